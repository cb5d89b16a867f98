// How the game of a server is run, as its owner chooses it.
import { Closed, Nullable, OneOf, type Static, Type } from '../schema.ts'

export const RUNTIME_KINDS = ['process', 'container'] as const

// As engines take it: a registry, which has a dot or a port or is localhost, a path, a tag and a digest. Anything else, such as
// an option of a command line or an address with credentials, is no image.
const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const NAME = '[a-z0-9]+(?:(?:\\.|_{1,2}|-+)[a-z0-9]+)*'
const PORT = ':[0-9]{1,5}'
const REGISTRY = `(?:localhost(?:${PORT})?|${LABEL}(?:\\.${LABEL})+(?:${PORT})?|${LABEL}${PORT})`
const TAG = ':[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}'
export const IMAGE_FORM = `^(?:${REGISTRY}/)?${NAME}(?:/${NAME})*(?:${TAG})?(?:@sha256:[0-9a-f]{64})?$`

export const ImageName = Type.String({ minLength: 1, maxLength: 255, pattern: IMAGE_FORM })

export const NewRuntime = Closed({
  kind: OneOf(RUNTIME_KINDS, {
    description: '`process` where the template allows it, else `container`, by default',
  }),
  image: Type.Optional(
    Nullable({
      ...ImageName,
      description: 'For a container. The first of the template by default',
    } as typeof ImageName),
  ),
})

export interface RuntimeChoice {
  kind: Static<typeof NewRuntime>['kind']
  /** null: the first of the template. */
  image: string | null
}
