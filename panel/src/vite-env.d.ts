declare module 'virtual:theme-variables.css'
declare module '*.po' {
  import type { Messages } from '@lingui/core'

  export const messages: Messages
}
