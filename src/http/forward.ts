import type { FastifyReply, FastifyRequest } from 'fastify'
import type { LinkPurpose } from './signed-links.ts'

/**
 * Hands a request that control has let in to the agent's own door, under a link signed for it. On one machine the
 * agent answers in the same process. The reply has been sent, or refused by throwing, when it resolves.
 */
export type Forward = (
  purpose: LinkPurpose,
  link: string,
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<FastifyReply>
