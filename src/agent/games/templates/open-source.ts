// Games whose servers are packages of the distribution, and a template for everything else.
import type { Template } from '../../../contract/games/template-format.ts'

/**
 * It answers no queries: who plays is counted in its console. Without a terminal it takes no commands, so nothing can hold its
 * world still: a backup while it runs is `live`.
 */
export const luanti: Template = {
  format: 1,
  id: 'luanti',
  name: 'Luanti (Minetest)',
  description: "Debian's minetest-server, or Luanti's own. Games go into the folder games.",
  isTested: true,
  defaultPort: 30000,
  runtimes: ['process'],
  variables: [
    {
      name: 'PROGRAM',
      title: 'Program',
      type: 'choice',
      default: 'minetestserver',
      choices: ['minetestserver', 'luantiserver'],
    },
    { name: 'GAME_ID', title: 'Game', type: 'text', default: 'minetest', form: 'dashed', isRequired: true },
    { name: 'WORLD', title: 'World folder', type: 'text', default: 'world', form: 'dashed', isRequired: true },
    { name: 'SERVER_NAME', title: 'Name in the list', type: 'text', default: 'Luanti server', maxLength: 100 },
    { name: 'MAX_USERS', title: 'Players at once', type: 'integer', default: 15, min: 1, max: 500 },
    { name: 'ADMIN', title: 'Name of the admin', type: 'text', form: 'dashed', maxLength: 20 },
    { name: 'CREATIVE', title: 'Creative mode', type: 'boolean', default: false },
  ],
  requires: [
    { kind: 'program', program: '{{PROGRAM}}', hint: 'Install it, for example with: apt install minetest-server' },
  ],
  start: {
    args: [
      '{{PROGRAM}}',
      '--world',
      './{{WORLD}}',
      '--config',
      './minetest.conf',
      '--gameid',
      '{{GAME_ID}}',
      '--port',
      '{{server.port}}',
      '--color',
      'never',
      // The default of Debian's package is a file in /var/log, which a game cannot write to.
      '--logfile',
      './debug.txt',
    ],
  },
  configFiles: [
    {
      path: '/minetest.conf',
      format: 'ini',
      settings: [
        { key: ['port'], value: '{{server.port}}' },
        { key: ['server_name'], value: '{{SERVER_NAME}}' },
        { key: ['max_users'], value: '{{MAX_USERS}}' },
        { key: ['name'], value: '{{ADMIN}}' },
        { key: ['creative_mode'], value: '{{CREATIVE}}' },
      ],
    },
  ],
  ready: ['listening on '],
  // Without a terminal it takes no commands; this saves and ends it.
  stop: [
    { signal: 'SIGINT', timeoutSeconds: 60, message: 'Waiting for the world to be saved' },
    { signal: 'SIGTERM', timeoutSeconds: 30 },
  ],
  stopsByItself: ['^{date} {time} {source}: Server: Shutting down'],
  joins: [']: {player} [*] joins game.'],
  leaves: [']: {player} leaves game.'],
  ports: [{ name: 'game', protocol: 'udp' }],
  ignored: ['/debug.txt*'],
}

export const openttd: Template = {
  format: 1,
  id: 'openttd',
  name: 'OpenTTD',
  description: "Debian's openttd with openttd-opengfx, as a dedicated server.",
  isTested: true,
  defaultPort: 3979,
  runtimes: ['process'],
  variables: [
    { name: 'SERVER_NAME', title: 'Name in the list', type: 'text', default: 'OpenTTD server', maxLength: 79 },
    { name: 'MAX_CLIENTS', title: 'Players at once', type: 'integer', default: 25, min: 2, max: 255 },
    { name: 'PASSWORD', title: 'Password to join', type: 'secret', maxLength: 32 },
    {
      name: 'SAVE',
      title: 'Saved game to load',
      description: 'Such as save/autosave/exit.sav, which is written when the server stops. Empty for a new game.',
      type: 'text',
      pattern: '^[\\w./ -]*\\.(sav|scn)$',
    },
  ],
  requires: [
    { kind: 'program', program: 'openttd', hint: 'Install it, for example with: apt install openttd openttd-opengfx' },
  ],
  start: {
    args: [
      'openttd',
      '-D',
      '{{server.address}}:{{server.port}}',
      '-c',
      './openttd.cfg',
      { if: 'SAVE', args: ['-g', '{{SAVE}}'] },
      { if: 'PASSWORD', args: ['-p', '{{PASSWORD}}'] },
    ],
  },
  configFiles: [
    {
      path: '/openttd.cfg',
      format: 'ini',
      settings: [
        { key: ['network', 'server_port'], value: '{{server.port}}' },
        { key: ['network', 'max_clients'], value: '{{MAX_CLIENTS}}' },
        // Where it looks at its first start; afterwards it does in the other file.
        { key: ['network', 'server_name'], value: '{{SERVER_NAME}}' },
        { key: ['gui', 'autosave_on_exit'], value: 'true' },
      ],
    },
    {
      path: '/private.cfg',
      format: 'ini',
      settings: [{ key: ['network', 'server_name'], value: '{{SERVER_NAME}}' }],
    },
  ],
  ready: ['starting game'],
  stop: [
    { command: 'quit', timeoutSeconds: 60, message: 'Waiting for the game to be saved' },
    { signal: 'SIGTERM', timeoutSeconds: 30 },
  ],
  stopsByItself: ['^dbg: [{module}] Shutting down network', '^[{date} {time}] dbg: [{module}] Shutting down network'],
  joins: ['*** {player} has joined the game'],
  leaves: ['*** {player} has left the game'],
  ports: [
    { name: 'game', protocol: 'tcp' },
    { name: 'query', protocol: 'udp', offset: 0 },
  ],
  query: { type: 'openttd', port: 'query' },
  quiesce: {
    before: ['save gamekeeper'],
    isStill: ['^Map successfully saved to', '^[{date} {time}] Map successfully saved to'],
    timeoutSeconds: 60,
    after: [],
  },
  ignored: ['/screenshot/'],
}

export const generic: Template = {
  format: 1,
  id: 'generic',
  name: 'Generic',
  description: 'Runs a program among the files of the server, with up to eight arguments.',
  isTested: true,
  runtimes: ['process', 'container'],
  images: [{ name: 'Debian', image: 'docker.io/library/debian:stable-slim' }],
  variables: [
    { name: 'PROGRAM', title: 'Program', type: 'text', default: './start.sh', isRequired: true },
    ...Array.from({ length: 8 }, (_, index) => ({
      name: `ARG_${index + 1}`,
      title: `Argument ${index + 1}`,
      type: 'text' as const,
    })),
  ],
  start: {
    args: [
      '{{PROGRAM}}',
      ...Array.from({ length: 8 }, (_, index) => ({ if: `ARG_${index + 1}`, args: [`{{ARG_${index + 1}}}`] })),
    ],
    environment: { SERVER_PORT: '{{server.port}}', SERVER_MEMORY: '{{server.memoryMiB}}' },
  },
  stop: [
    { signal: 'SIGINT', timeoutSeconds: 30 },
    { signal: 'SIGTERM', timeoutSeconds: 30 },
  ],
}
