import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import { Closed, Nullable, OneOf, Page, PageQuery, type Static, Timestamp, Type } from '../schema.ts'
import { Template, TemplateId } from './template-format.ts'

const Source = OneOf(['shipped', 'own'], { description: '`shipped` comes with Gamekeeper; `own` was added by `POST`' })

export const TemplateSummary = Type.Object({
  id: TemplateId,
  name: Type.String(),
  description: Nullable(Type.String()),
  source: Source,
  isTested: Type.Boolean({ description: 'Our tests start the real game with it' }),
  runtimes: Type.Array(OneOf(['process', 'container'])),
  createdAt: Nullable(Timestamp),
})
export type TemplateSummary = Static<typeof TemplateSummary>

export const StoredTemplate = Type.Object({
  ...Template.properties,
  source: Source,
  createdAt: Nullable(Type.String({ format: 'date-time', description: 'null for a shipped one' })),
})
export type StoredTemplate = Static<typeof StoredTemplate>

export const REPORT_LEVELS = ['carried', 'changed', 'dropped'] as const
export const ReportEntry = Type.Object({
  path: Type.String({ description: 'A JSON pointer into what was sent' }),
  level: OneOf(REPORT_LEVELS),
  message: Type.String(),
})
export type ReportEntry = Static<typeof ReportEntry>

export const ImportedTemplate = Type.Object({ template: StoredTemplate, report: Type.Array(ReportEntry) })
export type ImportedTemplate = Static<typeof ImportedTemplate>

export const TEMPLATE_MEDIA_TYPES = ['application/json', 'application/yaml'] as const
export type TemplateMediaType = (typeof TEMPLATE_MEDIA_TYPES)[number]

const template = {
  format: 1,
  id: 'my-game',
  name: 'My game',
  runtimes: ['process'],
  start: { args: ['/my-game', '--port', '{{server.port}}'] },
  stop: [{ command: 'quit', timeoutSeconds: 30 }],
} as const satisfies Template
const stored = { ...template, source: 'own', createdAt: '2026-11-15T00:00:00.000Z' }
const summary = {
  id: 'openttd',
  name: 'OpenTTD',
  description: 'A dedicated server.',
  source: 'shipped',
  isTested: true,
  runtimes: ['process'],
  createdAt: null,
}

export const TemplateOrEgg = Type.Object(
  {},
  { additionalProperties: true, description: 'A template (docs/templates.md) or an egg', examples: [template] },
)

const TemplateParams = Closed({ templateId: TemplateId })

export const listTemplates = operation({
  id: 'listTemplates',
  method: 'GET',
  path: '/templates',
  tag: 'Templates',
  summary: 'List what can be run',
  description: 'By id: the templates that come with Gamekeeper, and your own.',
  scope: 'servers:read',
  bound: BOUNDS.page,
  query: Closed({ ...PageQuery }),
  answers: {
    200: {
      description: 'A page of templates',
      schema: Page(TemplateSummary),
      example: { data: [summary], nextCursor: null },
    },
  },
  errors: [],
})

export const createTemplate = operation({
  id: 'createTemplate',
  method: 'POST',
  path: '/templates',
  tag: 'Templates',
  summary: 'Add a template of your own, or import an egg',
  description:
    'The body is a template, or a Pterodactyl or Pelican egg (PTDL_v1, PTDL_v2, PLCN_v1 to PLCN_v3), as JSON or YAML of at ' +
    'most 1 MiB. The report names every part of an egg: what was carried over, changed or dropped. ' +
    'Needs a token for all servers.',
  scope: 'templates:write',
  bound: BOUNDS.template,
  query: Closed({
    id: Type.Optional(
      Type.String({ ...TemplateId, description: 'Instead of the id in the body, or of the name of an egg' }),
    ),
    replace: Type.Optional(
      Type.Boolean({ description: 'Whether one of your own with this id is replaced. false by default' }),
    ),
  }),
  rawBody: {
    types: TEMPLATE_MEDIA_TYPES,
    description: 'A template or an egg',
    schema: TemplateOrEgg,
    example: template,
  },
  answers: {
    201: {
      description: 'The template as it is kept, and what became of each part',
      schema: ImportedTemplate,
      example: {
        template: stored,
        report: [
          { path: '/config/stop', level: 'changed', message: '`^^C` means SIGINT; elsewhere it ends in SIGKILL' },
        ],
      },
    },
  },
  errors: ['too_large', 'unsupported_media_type', 'already_exists', 'quota_exceeded', 'idempotency_conflict'],
})

export const readTemplate = operation({
  id: 'readTemplate',
  method: 'GET',
  path: '/templates/{templateId}',
  tag: 'Templates',
  summary: 'Read one template',
  scope: 'servers:read',
  bound: BOUNDS.template,
  params: TemplateParams,
  answers: { 200: { description: 'The template', schema: StoredTemplate, example: stored } },
  errors: [],
})

export const deleteTemplate = operation({
  id: 'deleteTemplate',
  method: 'DELETE',
  path: '/templates/{templateId}',
  tag: 'Templates',
  summary: 'Delete a template of your own',
  description:
    'Refused while a server uses it, also a deleted server that can be brought back, and for one that comes with ' +
    'Gamekeeper. Needs a token for all servers.',
  scope: 'templates:write',
  bound: BOUNDS.rows,
  params: TemplateParams,
  answers: { 204: { description: 'Deleted' } },
  errors: ['template_in_use'],
})

export const TEMPLATE_OPERATIONS = [listTemplates, createTemplate, readTemplate, deleteTemplate]
