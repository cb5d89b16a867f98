// Asks a name server as fast as it answers, with a bounded number of questions under way, and prints what came back.
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import * as dnsPacket from 'dns-packet'

const SOCKETS = 4
const UNDER_WAY = 32
const LOST_AFTER_MS = 250

const [host = '127.0.0.1', port = '0', queries = '0', ...names] = process.argv.slice(2)
const questions = names.map((asked) => {
  const [name = '', type = 'A'] = asked.split('/')
  return dnsPacket.encode({ type: 'query', questions: [{ name, type: type as 'A' }] })
})

let left = Number(queries)
let answered = 0
let lost = 0

/** One socket keeps its own share of questions under way; an id is used again once its answer is there. */
async function ask(socket: Socket): Promise<void> {
  socket.connect(Number(port), host)
  await once(socket, 'connect')
  const sentAt = new Float64Array(UNDER_WAY)
  const { promise, resolve } = Promise.withResolvers<void>()
  const send = (id: number) => {
    if (left <= 0) {
      sentAt[id] = 0
      if (sentAt.every((at) => at === 0)) resolve()
      return
    }
    const packet = Buffer.from(questions[left % questions.length] as Buffer)
    left--
    packet.writeUInt16BE(id, 0)
    sentAt[id] = performance.now()
    socket.send(packet)
  }
  socket.on('message', (answer) => {
    const id = answer.readUInt16BE(0)
    const isGood = (answer.readUInt16BE(2) & 0x800f) === 0x8000 && answer.readUInt16BE(6) > 0
    if (!sentAt[id] || !isGood) return
    answered++
    send(id)
  })
  const sweep = setInterval(() => {
    const before = performance.now() - LOST_AFTER_MS
    for (let id = 0; id < UNDER_WAY; id++) {
      if (!sentAt[id] || (sentAt[id] as number) > before) continue
      lost++
      send(id)
    }
  }, LOST_AFTER_MS / 5)
  for (let id = 0; id < UNDER_WAY; id++) send(id)
  await promise
  clearInterval(sweep)
  socket.close()
}

const started = performance.now()
const cpu = process.cpuUsage()
await Promise.all(Array.from({ length: SOCKETS }, () => ask(createSocket('udp4'))))
const seconds = (performance.now() - started) / 1000
const { user, system } = process.cpuUsage(cpu)
console.log(JSON.stringify({ answered, lost, seconds, loadCpuSeconds: (user + system) / 1e6 }))
