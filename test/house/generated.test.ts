import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Validator } from '@seriousme/openapi-schema-validator'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('what is generated is what `npm run gen` writes', () => {
  const fresh = mkdtempSync(join(tmpdir(), 'pinfold-gen-'))
  try {
    execFileSync(process.execPath, [join(root, 'scripts/gen.ts'), fresh], { cwd: root, stdio: 'pipe' })
    const listed = (folder: string) =>
      globSync(['gen/**/*.{ts,json}', 'docs/{config,errors}.md'], { cwd: folder }).sort()
    assert.deepEqual(listed(root), listed(fresh))
    for (const file of listed(fresh)) {
      assert.ok(readFileSync(join(root, file)).equals(readFileSync(join(fresh, file))), `${file} is stale: npm run gen`)
    }
  } finally {
    rmSync(fresh, { recursive: true })
  }
})

test('the OpenAPI document is valid OpenAPI 3.1 and has every method of the contract', async () => {
  const document = JSON.parse(readFileSync(join(root, 'gen/openapi.json'), 'utf8'))
  const { valid, errors } = await new Validator().validate(structuredClone(document))
  assert.ok(valid, JSON.stringify(errors))
  assert.equal(document.openapi, '3.1.0')
  const operations = Object.values(document.paths as Record<string, object>).flatMap((path) => Object.values(path))
  assert.ok(operations.length >= 75)
  for (const operation of operations) assert.ok(operation.description, `${operation.operationId} has no comment`)
})
