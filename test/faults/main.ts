// `npm run faults -- NAME [rounds]`: kills the real thing in the middle of its work, again and again, or plays two
// operations at once in every order.
import { run as killBackups } from './backups.ts'
import { killBackupService } from './backups-service.ts'
import { run as killDns } from './dns.ts'
import { run as killFiles } from './files.ts'
import { killGames } from './games.ts'
import { runHistories } from './history/main.ts'
import { runMutants } from './history/mutants.ts'
import { runSweep } from './history/sweep.ts'
import { playHostile } from './hostile.ts'
import { troubleOffsite } from './offsite/main.ts'
import { playOrders } from './orders.ts'
import { killRestores } from './restore.ts'
import { killService } from './service.ts'

interface Fault {
  about: string
  rounds: number
  run(rounds: number, say: (line: string) => void, args: string[]): Promise<void>
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
  offsite: {
    about:
      'SIGKILL of the service and of its S3 server, stalls, errors, cuts and lost uploads: what was said to be stored ' +
      'restores from the bucket alone (--seed S)',
    rounds: 100,
    run: troubleOffsite,
  },
  restore: {
    about: 'SIGKILL before each change of finishing a restore that has stopped, forward and back (every n-th of them)',
    rounds: 1,
    run: killRestores,
  },
  files: {
    about: 'SIGKILL in the middle of work on files: whole files only, none lost, nothing left over, the account right',
    rounds: 200,
    run: killFiles,
  },
  games: {
    about: 'SIGKILL of the service while games run: no game dies, no line is lost, every power action works afterwards',
    rounds: 50,
    run: killGames,
  },
  history: {
    about:
      'random histories through kills, clock steps, full disks and injected errors, compared with disk, database, store, ' +
      'DNS and activity (--seed S, --theme a,b, --engine sqlite, --at-once N)',
    rounds: 200,
    run: runHistories,
  },
  'history-errors': {
    about:
      'one scenario, once for every call to the file system that it makes, which fails (0 rounds for all of them; ' +
      "--call 'a regular expression' for some)",
    rounds: 0,
    run: runSweep,
  },
  'history-mutants': {
    about: 'takes one fix out again at a time: the histories find each (rounds at most for one)',
    rounds: 10,
    run: runMutants,
  },
  orders: {
    about:
      'two operations on one server in every order of their steps (at most as many orders of each pair as rounds; ' +
      "--pair 'delete server × ', --engine sqlite, --seed S)",
    rounds: 1000,
    run: playOrders,
  },
  hostile: {
    about:
      'one tenant attacks the running service while another works: its data is right, its requests are quick, the service ' +
      'is up (as many times as large as in npm test; --only traversal)',
    rounds: 10,
    run: playHostile,
  },
}

const [name = '', ...args] = process.argv.slice(2)
const rounds = /^\d+$/.test(args[0] ?? '') ? args[0] : undefined
const fault = FAULTS[name]
if (!fault) {
  console.log('npm run faults -- NAME [rounds]\n')
  for (const [known, { about, rounds: all }] of Object.entries(FAULTS))
    console.log(`  ${known}  ${about} (${all} rounds)`)
  process.exitCode = name === '' ? 0 : 2
} else {
  await fault.run(Number(rounds ?? fault.rounds), console.log, args)
}
