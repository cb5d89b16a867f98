declare module 'virtual:theme-variables.css'
declare module '*.po' {
  import type { Messages } from '@lingui/core'

  export const messages: Messages
}
/** Of the package that the panel was built in, which is that of the service. */
declare const __VERSION__: string
