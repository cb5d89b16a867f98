import type { QueryOf } from '../contract/operation.ts'
import { createToken, listTokens, type NewToken, readOwnToken, revokeToken, type Token } from '../contract/tokens.ts'
import { itemsOf } from './pages.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

export type TokenQuery = QueryOf<typeof listTokens>

export function createTokensApi(transport: Transport) {
  const list = transport.method(listTokens, (query: TokenQuery = {}, options: CallOptions = {}) => ({
    query,
    ...options,
  }))
  return {
    /** The value is in the answer as `token`, this once. */
    create: transport.method(createToken, (body: NewToken, options: CallOptions = {}) => ({ body, ...options })),
    /** One page, newest first. */
    list,
    all: (query: TokenQuery = {}, options: CallOptions = {}): AsyncGenerator<Token, void, undefined> =>
      itemsOf((pageQuery: TokenQuery) => list(pageQuery, options), query),
    /** The token that this client has. */
    own: transport.method(readOwnToken, (options: CallOptions = {}) => options),
    revoke: transport.method(revokeToken, (tokenId: string, options: CallOptions = {}) => ({
      params: { tokenId },
      ...options,
    })),
  }
}
