// docs/templates.md: its example is a template, and its table has every field.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Template } from '../../../contract/games/template-format.ts'
import { readTemplate } from '../../../templates/read.ts'
import { SHIPPED_TEMPLATES } from './index.ts'

const page = readFileSync(join(import.meta.dirname, '../../../../docs/templates.md'), 'utf8')

test('the example in docs/templates.md is a template', () => {
  const [, yaml = ''] = /^```yaml\n(.*?)^```/ms.exec(page) ?? []
  assert.equal(readTemplate(yaml, 'application/yaml').template.id, 'my-game')
})

test('docs/templates.md has every field and every shipped template, and no other field', () => {
  const [, section = ''] = page.split(/^## Fields$/m)
  const [table = ''] = section.split('A line pattern')
  const named = [...table.matchAll(/^\| `(\w+)` +\|/gm)].map(([, name]) => name)
  assert.deepEqual(named.toSorted(), Object.keys(Template.properties).sort())
  for (const { id } of SHIPPED_TEMPLATES) assert.ok(page.includes(`\`${id}\``), id)
})
