import { createToken, listTokens, readOwnToken, revokeToken } from '../../contract/tokens.ts'
import { type Api, serve } from '../http/route.ts'
import type { Tokens } from './service.ts'

export function tokenRoutes(api: Api, tokens: Tokens): void {
  serve(api, createToken, (call) => tokens.create(call.actor, call.body))
  serve(api, listTokens, (call) => tokens.list(call.actor, call.query))
  serve(api, readOwnToken, (call) => tokens.readOwn(call.actor))
  serve(api, revokeToken, async (call) => {
    await tokens.revoke(call.actor, call.params.tokenId)
    return undefined
  })
}
