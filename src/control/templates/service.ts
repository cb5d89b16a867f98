// What can be run: the templates that come with us, and the user's own, which are rows like everything else that several
// machines share (docs/decisions/templates.md).
import { fail, invalidField } from '../../contract/errors.ts'
import { TEMPLATES_MAX } from '../../contract/fixed-limits.ts'
import { GAMES } from '../../contract/games/games.ts'
import type { Template } from '../../contract/games/template-format.ts'
import type {
  ImportedTemplate,
  StoredTemplate,
  TemplateMediaType,
  TemplateSummary,
} from '../../contract/games/templates.ts'
import type { Page } from '../../contract/schema.ts'
import { iso } from '../../kit/time.ts'
import { createTemplateReader } from '../../templates/reader-thread.ts'
import type { Activity } from '../activity/service.ts'
import type { Db, TemplateRow, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { type Actor, requireAllServers } from '../http/actor.ts'
import { type Cursors, pageOf, pageRequest } from '../http/paging.ts'
import * as store from './store.ts'

export interface NewTemplate {
  text: string
  type: TemplateMediaType
  id?: string | undefined
  replace?: boolean | undefined
}

export interface Templates {
  list(query: { limit?: number; cursor?: string }): Promise<Page<TemplateSummary>>
  read(templateId: string): Promise<StoredTemplate>
  /** The template of a server's `game`; undefined where it has none. */
  find(templateId: string): Promise<Template | undefined>
  create(actor: Actor, request: NewTemplate): Promise<ImportedTemplate>
  remove(actor: Actor, templateId: string): Promise<undefined>
  /** Before anything is made for a server of this game: its template; undefined for a game that we know and that has none. */
  requireGame(game: string): Promise<Template | undefined>
  /** The same in the transaction that gives it to a server: nobody deletes a template of the user until that has ended. */
  lockGame(trx: Trx, game: string): Promise<Template | undefined>
}

const LIST = 'templates'

export function createTemplates(deps: {
  db: Db
  activity: Activity
  cursors: Cursors
  clock: { now(): number }
  shipped: readonly Template[]
}): Templates {
  const { db, activity, cursors, clock } = deps
  const shipped = new Map(deps.shipped.map((template) => [template.id, template]))
  const reader = createTemplateReader()

  async function read(templateId: string): Promise<StoredTemplate> {
    const ours = shipped.get(templateId)
    if (ours) return { ...ours, source: 'shipped', createdAt: null }
    const row = await store.findTemplate(db, templateId)
    if (!row) throw noSuchTemplate()
    return { ...(JSON.parse(row.content) as Template), source: 'own', createdAt: iso(row.created_at) }
  }

  async function find(templateId: string): Promise<Template | undefined> {
    const row = shipped.has(templateId) ? undefined : await store.findTemplate(db, templateId)
    return shipped.get(templateId) ?? (row && (JSON.parse(row.content) as Template))
  }

  async function keep(trx: Trx, actor: Actor, row: TemplateRow, replace: boolean): Promise<void> {
    const properties = { templateId: row.id, name: row.name }
    if (await store.insertTemplateIfAbsent(trx, row)) {
      // Recording waits for whoever else records something of no server: what is counted after it is complete.
      await activity.record(trx, actor, 'template.created', null, properties)
      if ((await store.countTemplates(trx)) > TEMPLATES_MAX)
        throw fail('quota_exceeded', `There are ${TEMPLATES_MAX} templates of your own already.`)
      return
    }
    if (!replace) throw fail('already_exists', `There is a template ${row.id} already. Use replace=true to replace it.`)
    if (await store.updateTemplate(trx, row))
      return void (await activity.record(trx, actor, 'template.replaced', null, properties))
    // It was deleted since.
    await keep(trx, actor, row, replace)
  }

  return {
    async list(query) {
      const request = pageRequest(cursors, LIST, query)
      const after = request.after ? String(request.after[0]) : ''
      const ids = [...shipped.keys(), ...(await store.listTemplateIds(db))].filter((id) => id > after).sort()
      const wanted = ids.slice(0, request.limit + 1)
      const rows = await store.summariesOf(
        db,
        wanted.filter((id) => !shipped.has(id)),
      )
      const own = new Map(rows.map((row) => [row.id, presentRow(row)]))
      // One that was deleted meanwhile is left out.
      const found = wanted.flatMap((id) => presentShipped(shipped.get(id)) ?? own.get(id) ?? [])
      return pageOf(
        found,
        request,
        (summary) => summary,
        ({ id }) => cursors.encode(LIST, [id]),
      )
    },

    read,

    find,

    async create(actor, { text, type, id, replace = false }) {
      requireAllServers(actor)
      const { template, report } = await reader.read({ text, type, options: { id, takenIds: [...shipped.keys()] } })
      if (shipped.has(template.id))
        throw fail('already_exists', `${template.id} comes with Gamekeeper. Use another id.`)
      const now = clock.now()
      return transact(db, actor, async (trx) => {
        await keep(trx, actor, rowOf(template, now), replace)
        return { template: { ...template, source: 'own' as const, createdAt: iso(now) }, report }
      })
    },

    async remove(actor, templateId) {
      requireAllServers(actor)
      if (shipped.has(templateId)) throw fail('invalid_request', `${templateId} comes with Gamekeeper, and stays.`)
      return transact(db, actor, async (trx) => {
        const row = await store.lockTemplate(trx, templateId)
        if (!row) throw noSuchTemplate()
        const uses = await store.countUses(trx, templateId)
        if (uses > 0)
          throw fail('template_in_use', `Servers that use it, deleted ones that can be brought back included: ${uses}.`)
        await store.removeTemplate(trx, templateId)
        await activity.record(trx, actor, 'template.deleted', null, { templateId, name: row.name })
        return undefined
      })
    },

    async requireGame(game) {
      const template = await find(game)
      if (!template && !isKnownGame(game)) throw noSuchGame()
      return template
    },

    async lockGame(trx, game) {
      const row = shipped.has(game) ? undefined : await store.lockTemplate(trx, game)
      const template = shipped.get(game) ?? (row && (JSON.parse(row.content) as Template))
      if (!template && !isKnownGame(game)) throw noSuchGame()
      return template
    },
  }
}

const isKnownGame = (id: string) => Object.hasOwn(GAMES, id)
const noSuchGame = () => invalidField('/game', 'must be the id of a template, or of a game that we know')
const noSuchTemplate = () => fail('not_found', 'No such template.')

function rowOf(template: Template, now: number): TemplateRow {
  return {
    id: template.id,
    name: template.name,
    description: template.description ?? null,
    runtimes: JSON.stringify(template.runtimes),
    content: JSON.stringify(template),
    srv: template.srv ?? null,
    default_port: template.defaultPort ?? null,
    created_at: now,
  }
}

function presentShipped(template: Template | undefined): TemplateSummary | undefined {
  if (!template) return undefined
  const { id, name, description = null, isTested = false, runtimes } = template
  return { id, name, description, source: 'shipped', isTested, runtimes: [...runtimes], createdAt: null }
}

function presentRow({ id, name, description, runtimes, created_at }: store.TemplateSummaryRow): TemplateSummary {
  const createdAt = iso(created_at)
  return { id, name, description, source: 'own', isTested: false, runtimes: JSON.parse(runtimes), createdAt }
}
