// Every page of the panel: where it is, and what is on it as soon as it shows what it is for.

export interface PanelPage {
  name: string
  path: string
  /** A selector. */
  ready: string
}

export function pagesOf(serverId: string, backupId: string): PanelPage[] {
  const server = `/servers/${serverId}`
  const files = `${server}/files`
  const backups = `${server}/backups`
  const page = (name: string, path: string, ready: string) => ({ name, path, ready })
  return [
    page('servers', '/', 'main li'),
    page('new-server', '/servers/new', 'main li a'),
    page('new-server-form', '/servers/new/generic', 'main form'),
    page('people', '/people', 'main li'),
    page('instance', '/instance', 'main section li'),
    page('templates', '/instance/templates', 'main li'),
    page('zones', '/instance/zones', 'main section'),
    page('tokens', '/instance/tokens', 'main li'),
    page('overview', server, '.u-wrap'),
    page('files', files, '[role=grid]'),
    page('editor', `${files}?edit=server.properties`, '.cm-content'),
    page('log', `${files}/logs?view=latest.log`, 'pre'),
    page('versions', `${files}?versions=server.properties`, 'main li button'),
    page('usage', `${files}?show=usage`, 'main section button'),
    page('trash', `${files}?show=trash`, 'main section'),
    page('backups', backups, 'main li'),
    page('backup-inside', `${backups}?inside=${backupId}`, 'main li input'),
    page('backup-plans', `${backups}?show=plan`, 'main form'),
    page('names', `${server}/names`, 'main form'),
    page('activity', `${server}/activity`, 'main ol > li'),
    page('settings', `${server}/settings`, 'main form'),
  ]
}
