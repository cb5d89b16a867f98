// Sends what a client has decided on, and takes the answer into the model.
import { settleDoubtOf } from './checker/files.ts'
import { expectOk, type History, type Outcome } from './history.ts'
import type { Plot, TrashedTree } from './model.ts'
import type { Round } from './round.ts'
import type { Step } from './steps.ts'

const TUS = { 'tus-resumable': '1.0.0' }

/** Answers false when nobody heard the answer: what the plot is now is settled once the service is there again. */
export async function perform(round: Round, plot: Plot, step: Step): Promise<boolean> {
  const sent = step.upload
    ? await sendUpload(round, step, step.upload)
    : step.trashed
      ? await restoreItem(round, plot, step, step.trashed)
      : await sendOne(round, step)
  if (!sent) return true
  const { outcome, op } = sent
  const because = `${step.name} in ${plot.path} of ${plot.server.id} (${op}) was answered with ${outcome.kind}`
  if (outcome.kind === 'ok') {
    plot.state = step.after
    // After a refusal that was none, what is deleted again is not there any more: that is said once, by the disk.
    const isNothing = step.isNothing || saysNothing(step, outcome)
    round.expect(op, step.event, isNothing ? 0 : 1, because)
    return true
  }
  const isBroken = outcome.kind === 'refused' && outcome.status >= 500 && round.excuses.failingDisk === true
  if (outcome.kind === 'refused' && !isBroken) {
    round.expect(op, step.event, 0, `${because} ${outcome.code}`)
    return true
  }
  const states = [...(step.between ?? []), step.after]
  const alternatives = [plot.state, ...(step.isNothing ? [] : states)].map((state, index) => ({
    state,
    entries: index === 0 ? 0 : 1,
  }))
  plot.doubt = { op, event: step.event, asked: `${step.name} in ${plot.path} (${op})`, alternatives }
  if (isBroken) settleDoubtOf(round, plot)
  return isBroken
}

const saysNothing = ({ name }: Step, { status, body }: Extract<Outcome, { kind: 'ok' }>) =>
  (name === 'folder' && status === 200) || (name === 'delete' && body.deleted.length === 0)

/** `op`: whose entry it will be, which for an upload in pieces is the first request's. */
interface Sent {
  outcome: Outcome
  op: string
}

async function sendOne({ history }: Round, { call }: Step): Promise<Sent> {
  const outcome = await history.send(call)
  return { outcome, op: outcome.op }
}

async function sendUpload(round: Round, step: Step, upload: NonNullable<Step['upload']>): Promise<Sent> {
  const asked = await round.history.send(step.call)
  if (asked.kind !== 'ok') return { outcome: asked, op: asked.op }
  const url = asked.body.url as string
  if (upload.protocol === 'tus') return await sendPieces(round, url, upload)
  const form = new FormData()
  for (const { name, bytes } of upload.files) form.append('files', new Blob([bytes]), name)
  const target = `${url}?directory=${encodeURIComponent(upload.directory)}`
  const outcome = await round.history.send({ method: 'POST', target, form })
  return { outcome, op: outcome.op }
}

async function sendPieces(
  { history, random: all }: Round,
  url: string,
  upload: NonNullable<Step['upload']>,
): Promise<Sent> {
  const [{ name, bytes } = { name: '', bytes: Buffer.alloc(0) }] = upload.files
  const random = all.fork(bytes.toString('latin1', 0, 20))
  const metadata = Object.entries({ filename: name, directory: upload.directory })
  const created = await history.send({
    method: 'POST',
    target: url,
    headers: {
      ...TUS,
      'upload-length': String(bytes.length),
      'upload-metadata': metadata.map(([key, text]) => `${key} ${btoa(text)}`).join(','),
    },
  })
  if (created.kind !== 'ok') return { outcome: created, op: created.op }
  const id = created.headers.get('location')?.split('/').at(-1) ?? ''
  const cut = random.chance(0.5) ? random.int(bytes.length) : bytes.length
  let outcome: Outcome = created
  for (const [start, end] of [[0, cut] as const, [cut, bytes.length] as const]) {
    if (start === end) continue
    outcome = await history.send({
      method: 'PATCH',
      target: `${url}/${id}`,
      headers: { ...TUS, 'content-type': 'application/offset+octet-stream', 'upload-offset': String(start) },
      bytes: bytes.subarray(start, end),
    })
    if (outcome.kind !== 'ok') break
  }
  if (outcome.kind === 'refused') outcome = await goOnWith(history, `${url}/${id}`, bytes.length, outcome)
  return { outcome, op: created.op }
}

/** A refusal in the middle is not the end of an upload in pieces: what is whole is finished, the rest is given up. */
async function goOnWith(history: History, target: string, length: number, refusal: Outcome): Promise<Outcome> {
  const asked = await history.send({ method: 'HEAD', target, headers: TUS })
  if (asked.kind === 'ok' && Number(asked.headers.get('upload-offset')) === length) return asked
  const ended = await history.send({ method: 'DELETE', target, headers: TUS })
  return ended.kind === 'ok'
    ? refusal
    : { op: refusal.op, requestId: '', kind: 'unknown', reason: 'neither whole nor gone' }
}

/** The model says that the item is in the trash: that it is not listed is a loss. */
async function restoreItem(round: Round, plot: Plot, step: Step, item: TrashedTree): Promise<Sent | undefined> {
  const listed = await listTrash(round, plot.server.id)
  if (!listed) return undefined
  const found = listed.find(({ path }) => path === item.path)
  if (!found) {
    round.violation(`${item.path} of ${plot.server.id} left the trash, and nobody asked for that`)
    return undefined
  }
  const target = step.call.target.replace('{trashId}', found.id)
  const outcome = await round.history.send({ ...step.call, target })
  return { outcome, op: outcome.op }
}

/** Undefined while the service cannot be asked. */
export async function listTrash(
  { history }: Round,
  serverId: string,
): Promise<{ id: string; path: string }[] | undefined> {
  const items: { id: string; path: string }[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = `limit=100${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`
    const outcome = await history.send({ method: 'GET', target: `/files/${serverId}/trash?${query}` })
    if (outcome.kind !== 'ok') return undefined
    items.push(...outcome.body.data)
    cursor = outcome.body.nextCursor
  }
  return items
}

/** Reads a file of the plot through the API: it must be what was last written, also while others write elsewhere. */
export async function readBack(round: Round, plot: Plot, path: string, wanted: Buffer): Promise<void> {
  const target = `/files/${plot.server.id}/content?path=${encodeURIComponent(path)}`
  const outcome = await round.history.send({ method: 'GET', target })
  if (outcome.kind === 'unknown') return
  const read = expectOk(outcome)
  if (!wanted.equals(read.body))
    round.violation(`${path} of ${plot.server.id} does not read as it was written (${read.op})`)
}
