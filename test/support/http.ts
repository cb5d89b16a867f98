// Calls to a service that is a process of its own, as a script would make them.
import assert from 'node:assert/strict'
import { openEvents } from './events.ts'

export interface Http {
  url: string
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting on it
  call(method: string, path: string, body?: object): Promise<{ status: number; body: any }>
  /** Waits by the event stream, as a program would, and answers the last state. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting on it
  whenEnded(serverId: string, backupId: string): Promise<any>
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting on it
  backup(serverId: string, body?: object): Promise<any>
}

export function createHttp(url: string, token: string): Http {
  const call: Http['call'] = async (method, path, body) => {
    const response = await fetch(`${url}/v1/game${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  }
  const whenEnded: Http['whenEnded'] = async (serverId, backupId) => {
    const stream = await openEvents(`${url}/v1/game/backups/${serverId}/${backupId}`, token)
    let last: unknown
    for (let event = await stream.next(); event; event = await stream.next()) last = event.data
    return last
  }
  return {
    url,
    call,
    whenEnded,
    async backup(serverId, body = {}) {
      const made = await call('POST', `/backups/${serverId}`, body)
      assert.equal(made.status, 202, JSON.stringify(made.body))
      return whenEnded(serverId, made.body.id)
    },
  }
}
