import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { TemplateMediaType } from '../../../src/sdk/index.ts'
import { client } from './client.ts'

export interface TemplateFile {
  name: string
  text: string
}

const mediaType = ({ name }: TemplateFile): TemplateMediaType =>
  /\.ya?ml$/i.test(name) ? 'application/yaml' : 'application/json'

export function useTemplateActions() {
  const queries = useQueryClient()
  const onSettled = async () => {
    await queries.invalidateQueries({ queryKey: ['templates'] })
    await queries.invalidateQueries({ queryKey: ['template'] })
  }
  return {
    add: useMutation({
      mutationFn: ({ file, replace }: { file: TemplateFile; replace: boolean }) =>
        client.templates.create(file.text, { type: mediaType(file), replace }),
      onSettled,
    }),
    remove: useMutation({ mutationFn: (templateId: string) => client.templates.delete(templateId), onSettled }),
  }
}
