// A real BIND (named) with one zone that a TSIG key may update and transfer, in a temporary directory.
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, startDaemon, temporaryDirectory } from './daemons.ts'

export interface BindServer {
  server: { host: string; port: number }
  keyName: string
  keySecret: string
  stop(): Promise<void>
}

/** `records` are lines of a zone file below the SOA and NS. */
export async function startBind(zone: string, records: string[]): Promise<BindServer> {
  const directory = temporaryDirectory('bind')
  const port = await freePort()
  const keyName = 'gamekeeper-test'
  const keySecret = randomBytes(32).toString('base64')
  const zoneFile = join(directory.path, 'zone.db')
  const apex = [`$ORIGIN ${zone}.`, '$TTL 300', '@ IN SOA ns1 hostmaster 1 3600 600 1209600 30', '@ IN NS ns1']
  writeFileSync(zoneFile, `${[...apex, 'ns1 IN A 127.0.0.1', ...records].join('\n')}\n`)
  const config = join(directory.path, 'named.conf')
  writeFileSync(
    config,
    `options {
      directory "${directory.path}";
      pid-file none;
      session-keyfile none;
      managed-keys-directory "${directory.path}";
      listen-on port ${port} { 127.0.0.1; };
      listen-on-v6 { none; };
      recursion no;
      dnssec-validation no;
      notify no;
    };
    controls { };
    key "${keyName}" { algorithm hmac-sha256; secret "${keySecret}"; };
    zone "${zone}" {
      type primary;
      file "${zoneFile}";
      allow-update { key "${keyName}"; };
      allow-transfer { key "${keyName}"; };
    };`,
  )
  const args = ['-g', '-c', config, '-p', String(port), '-n', '1']
  const daemon = await startDaemon('/usr/sbin/named', args, / running$/m)
  return {
    server: { host: '127.0.0.1', port },
    keyName,
    keySecret,
    async stop() {
      await daemon.stop()
      directory.remove()
    },
  }
}
