// Small eggs of our own writing: one for each version, and together every feature that an import knows.

const variable = (env_variable: string, rules: unknown, default_value: unknown, more: object = {}) => ({
  name: env_variable.toLowerCase(),
  description: `What ${env_variable} is for.`,
  env_variable,
  default_value,
  user_viewable: true,
  user_editable: true,
  rules,
  ...more,
})

const installation = { script: '#!/bin/bash\necho installed', container: 'debian:stable-slim', entrypoint: 'bash' }

export const PTDL_V1 = {
  _comment: 'DO NOT EDIT',
  meta: { version: 'PTDL_v1' },
  exported_at: '2019-01-01T00:00:00+00:00',
  name: 'Old Game',
  author: 'anna@example.org',
  description: 'One image, and everything in texts.',
  image: 'quay.io/example/old:1',
  startup: './old -port {{SERVER_PORT}} -name "{{SERVER_NAME}}" {{EXTRA}}',
  config: {
    files: JSON.stringify({
      'server.properties': { parser: 'properties', find: { 'server-port': '{{server.build.default.port}}' } },
    }),
    startup: JSON.stringify({ done: 'Done (', userInteraction: [] }),
    logs: JSON.stringify({ custom: false, location: 'logs/latest.log' }),
    stop: 'stop',
  },
  scripts: { installation },
  variables: [variable('SERVER_NAME', 'required|string|max:20', 'A name'), variable('EXTRA', 'nullable|string', '')],
}

export const PTDL_V2 = {
  meta: { version: 'PTDL_v2', update_url: 'https://example.org/egg.json' },
  name: 'Every Rule',
  author: 'anna@example.org',
  features: ['eula', 'pid_limit'],
  docker_images: { 'Java 21': 'ghcr.io/example/java:21', 'Java 17': 'ghcr.io/example/java:17' },
  file_denylist: ['secret.txt'],
  startup: `exec ./game \${MAP}?players={{MAX_PLAYERS}} --memory {{SERVER_MEMORY}} --nothing {{UNDEFINED}}`,
  config: {
    files: JSON.stringify({
      'a.json': {
        parser: 'json',
        find: { 'net.port': '{{server.build.default.port}}', debug: false, 'dotted~1name': 1 },
      },
      'b.yml': {
        parser: 'yaml',
        find: { 'servers.*.address': { 'regex:^127\\.0\\.0\\.1$': '{{server.build.default.ip}}' } },
      },
      'c.ini': { parser: 'ini', find: { '[/Script/Engine.Game].MaxPlayers': '{{server.build.env.MAX_PLAYERS}}' } },
      'd.xml': {
        parser: 'xml',
        find: { "settings.property[@name='Port']": "[value='{{server.build.default.port}}']" },
      },
      'e.cfg': { parser: 'file', find: { 'hostname ': 'hostname "{{env.NAME}}"' } },
      'f.yml': {
        parser: 'yaml',
        find: { listeners: { localhost: '{{config.docker.interface}}' }, 'on.old': { yes: 'no' } },
      },
      'g.bin': { parser: 'magic', find: { a: 'b' } },
      '../h.txt': { parser: 'file', find: { a: 'b' } },
    }),
    startup: JSON.stringify({ done: ['Ready', 'regex:^Started.*$'], strip_ansi: true }),
    logs: '{}',
    stop: '^^C',
  },
  scripts: { installation },
  variables: [
    variable('MAP', 'required|string|in:one,two,"three, four"', 'one'),
    variable('MAX_PLAYERS', 'required|integer|between:1,100', '20'),
    variable('NAME', 'required|regex:/^[\\w ]{1,30}$/|not_in:admin,root', 'Game'),
    variable('LOOKS_BACK', 'nullable|regex:/^(a+)+\\1$/', 'aa'),
    variable('RATE', 'numeric|min:0.5|gt:0', '1.5'),
    variable('ON', 'required|boolean', '1'),
    variable('URL', 'nullable|url|ends_with:.zip|max:200', ''),
    variable('LICENSE_KEY', 'required|alpha_num|size:8', 'ABCDEFGH', { user_viewable: 0, user_editable: 0 }),
    variable('CODE', 'digits_between:2,4|confirmed', '123'),
    variable('WRONG', 'required|integer|max:5', '9'),
    variable('bad name', 'string', ''),
    variable('MAP', 'string', 'again'),
  ],
}

const pelican = (version: string, more: object) => ({
  meta: { version, update_url: null },
  uuid: '00000000-0000-4000-8000-000000000000',
  name: `Pelican ${version}`,
  author: 'anna@example.org',
  description: null,
  features: [],
  docker_images: { Debian: 'ghcr.io/example/debian:1' },
  config: {
    files: { 'g.toml': { parser: 'toml', find: { port: '{{server.allocations.default.port}}' } } },
    startup: { done: 'up' },
    logs: [],
    stop: '^X',
  },
  scripts: { installation },
  ...more,
})

export const PLCN_V1 = pelican('PLCN_v1', {
  startup: "[[ -f x ]] && ./game --name '{{NAME}}' > >(cat)",
  variables: [variable('NAME', ['required', 'string', 'max:20'], 'x', { sort: 1, field_type: 'text' })],
})

export const PLCN_V2 = pelican('PLCN_v2', {
  startup: 'cd /home/container; ./game --port {{SERVER_PORT}}',
  tags: ['one', 'two'],
  variables: [],
})

export const PLCN_V3 = pelican('PLCN_v3', {
  startup_commands: { Default: './game {{NAME}}', Debug: './game --debug' },
  icon: 'data:image/png;base64,AAAA',
  variables: [
    variable('SECOND', ['nullable', 'string'], '', { sort: 2 }),
    variable('NAME', ['nullable', 'string', 'min:1'], 'x', { sort: 1 }),
  ],
})

export const EGGS = { PTDL_V1, PTDL_V2, PLCN_V1, PLCN_V2, PLCN_V3 }
