// A real pdns_server with the SQLite backend, in a temporary directory.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { freePort, startDaemon, temporaryDirectory } from './daemons.ts'

const SCHEMA = '/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql'

export interface PowerDnsServer {
  url: string
  apiKey: string
  dns: { host: string; port: number }
  pid: number
  createZone(zone: string, recordSets: unknown[]): Promise<void>
  stop(): Promise<void>
}

export async function startPowerDns(): Promise<PowerDnsServer> {
  const directory = temporaryDirectory('powerdns')
  const [port, webPort] = [await freePort(), await freePort()]
  const apiKey = 'pdns-test-key'
  const database = join(directory.path, 'pdns.sqlite3')
  const sqlite = new DatabaseSync(database)
  sqlite.exec(readFileSync(SCHEMA, 'utf8'))
  sqlite.close()
  const settings = {
    launch: 'gsqlite3',
    'gsqlite3-database': database,
    'local-address': '127.0.0.1',
    'local-port': port,
    'socket-dir': directory.path,
    api: 'yes',
    'api-key': apiKey,
    webserver: 'yes',
    'webserver-address': '127.0.0.1',
    'webserver-port': webPort,
    'webserver-loglevel': 'none',
    'security-poll-suffix': '',
    'disable-syslog': 'yes',
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  writeFileSync(join(directory.path, 'pdns.conf'), `${lines.join('\n')}\n`)
  const args = ['--daemon=no', '--guardian=no', `--config-dir=${directory.path}`]
  const daemon = await startDaemon('/usr/sbin/pdns_server', args, /ready to distribute/)
  const url = `http://127.0.0.1:${webPort}`
  return {
    url,
    apiKey,
    dns: { host: '127.0.0.1', port },
    pid: daemon.pid,
    async createZone(zone, rrsets) {
      const response = await fetch(`${url}/api/v1/servers/localhost/zones`, {
        method: 'POST',
        headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
        body: JSON.stringify({ name: `${zone}.`, kind: 'Native', nameservers: [`ns1.${zone}.`], rrsets }),
      })
      if (response.status !== 201) throw new Error(`pdns_server made no zone: ${await response.text()}`)
    },
    async stop() {
      await daemon.stop()
      directory.remove()
    },
  }
}
