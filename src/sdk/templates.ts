import {
  createTemplate,
  deleteTemplate,
  listTemplates,
  readTemplate,
  type TemplateMediaType,
  type TemplateSummary,
} from '../contract/games/templates.ts'
import type { QueryOf } from '../contract/operation.ts'
import { itemsOf } from './pages.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

export type TemplateQuery = QueryOf<typeof listTemplates>
export type NewTemplateOptions = CallOptions & QueryOf<typeof createTemplate> & { type?: TemplateMediaType }

export function createTemplatesApi(transport: Transport) {
  const list = transport.method(listTemplates, (query: TemplateQuery = {}, options: CallOptions = {}) => ({
    query,
    ...options,
  }))
  return {
    /** One page, by id. */
    list,
    all: (query: TemplateQuery = {}, options: CallOptions = {}): AsyncGenerator<TemplateSummary, void, undefined> =>
      itemsOf((pageQuery: TemplateQuery) => list(pageQuery, options), query),
    read: transport.method(readTemplate, (templateId: string, options: CallOptions = {}) => ({
      params: { templateId },
      ...options,
    })),
    /** The text of a template or an egg; JSON by default. */
    create: transport.method(
      createTemplate,
      (text: string, { id, replace, type, headers, ...options }: NewTemplateOptions = {}) => ({
        body: text,
        query: { ...(id === undefined ? {} : { id }), ...(replace === undefined ? {} : { replace }) },
        headers: { ...(type ? { 'content-type': type } : {}), ...headers },
        ...options,
      }),
    ),
    delete: transport.method(deleteTemplate, (templateId: string, options: CallOptions = {}) => ({
      params: { templateId },
      ...options,
    })),
  }
}
