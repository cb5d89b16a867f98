import {
  createTemplate,
  deleteTemplate,
  listTemplates,
  readTemplate,
  type TemplateMediaType,
} from '../../contract/games/templates.ts'
import { BASE_PATH } from '../../contract/operation.ts'
import { type Api, serve } from '../http/route.ts'
import type { Templates } from './service.ts'

export function templateRoutes(api: Api, templates: Templates): void {
  serve(api, listTemplates, ({ query }) => templates.list(query))
  serve(
    api,
    createTemplate,
    ({ actor, query, request }) => {
      // Of one of the operation's types, which is checked where the body is read.
      const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() as TemplateMediaType
      return templates.create(actor, { ...query, text: request.body as string, type })
    },
    { location: ({ template }) => `${BASE_PATH}/templates/${template.id}` },
  )
  serve(api, readTemplate, ({ params }) => templates.read(params.templateId))
  serve(api, deleteTemplate, ({ actor, params }) => templates.remove(actor, params.templateId))
}
