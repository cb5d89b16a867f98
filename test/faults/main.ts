// `npm run faults -- NAME [rounds]`: kills the real thing in the middle of its work, again and again; or two at once in
// every order (`orders`), of which a filter such as 'delete server × ' takes some.
import { run as killBackups } from './backups.ts'
import { killBackupService } from './backups-service.ts'
import { run as killDns } from './dns.ts'
import { run as killFiles } from './files.ts'
import { playOrders } from './orders.ts'
import { killService } from './service.ts'

interface Fault {
  about: string
  rounds: number
  run(rounds: number, say: (line: string) => void, filter: string): Promise<void>
}

const FAULTS: Record<string, Fault> = {
  service: {
    about: 'SIGKILL in the middle of writes: every answered change is there with its entry',
    rounds: 100,
    run: killService,
  },
  dns: {
    about: 'SIGKILL while subdomains are made, moved and deleted: DNS and database agree (embedded)',
    rounds: 100,
    run: (rounds, say) => killDns(rounds, 'embedded', say),
  },
  powerdns: {
    about: 'the same with a real PowerDNS',
    rounds: 20,
    run: (rounds, say) => killDns(rounds, 'powerdns', say),
  },
  backups: {
    about:
      'SIGKILL during backup, restore, delete, reclaim and scrub: every completed backup whole, every tree old or new',
    rounds: 300,
    run: (rounds, say) => killBackups(rounds, undefined, say),
  },
  'backups-service': {
    about:
      'SIGKILL of the service during a backup and a restore over HTTP: the row ends well, the tree is the restored one',
    rounds: 40,
    run: killBackupService,
  },
  files: {
    about: 'SIGKILL in the middle of work on files: whole files only, none lost, nothing left over, the account right',
    rounds: 200,
    run: killFiles,
  },
  orders: {
    about: 'two operations on one server in every order of their steps, on both engines (so many orders of each pair)',
    rounds: 1000,
    run: playOrders,
  },
}

const [name = '', rounds, filter = ''] = process.argv.slice(2)
const fault = FAULTS[name]
if (!fault) {
  console.log('npm run faults -- NAME [rounds] [filter]\n')
  for (const [known, { about, rounds: all }] of Object.entries(FAULTS))
    console.log(`  ${known}  ${about} (${all} rounds)`)
  process.exitCode = name === '' ? 0 : 2
} else {
  await fault.run(Number(rounds ?? fault.rounds), console.log, filter)
}
