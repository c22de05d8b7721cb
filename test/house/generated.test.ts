import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Validator } from '@seriousme/openapi-schema-validator'
import { services } from '#api/services.ts'
import { httpOf } from '../../scripts/openapi-annotations.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('the generated files are equal to the output of `npm run gen`', () => {
  const fresh = mkdtempSync(join(tmpdir(), 'pinfold-gen-'))
  try {
    execFileSync(process.execPath, [join(root, 'scripts/gen.ts'), fresh], { cwd: root, stdio: 'pipe' })
    const listed = (folder: string) =>
      globSync(
        [
          'gen/**/*.{ts,json}',
          'gen/console/*',
          'docs/{config,errors}.md',
          'docs/reference/cli.md',
          'docs/api/*.md',
          'examples/chart/values.schema.json',
        ],
        { cwd: folder },
      ).sort()
    assert.deepEqual(listed(root), listed(fresh))
    for (const file of listed(fresh)) {
      assert.ok(readFileSync(join(root, file)).equals(readFileSync(join(fresh, file))), `${file} is stale: npm run gen`)
    }
  } finally {
    rmSync(fresh, { recursive: true })
  }
})

test('the OpenAPI documents are valid OpenAPI 3.1, and together contain each method of the contract', async () => {
  const described = new Set<string>()
  for (const file of ['gen/openapi.json', 'gen/openapi-v1.json']) {
    const document = JSON.parse(readFileSync(join(root, file), 'utf8'))
    const { valid, errors } = await new Validator().validate(structuredClone(document))
    assert.ok(valid, JSON.stringify(errors))
    assert.equal(document.openapi, '3.1.0')
    for (const [path, operations] of Object.entries<Record<string, { description: string }>>(document.paths)) {
      for (const [verb, operation] of Object.entries(operations)) {
        described.add(`${verb} ${path.replaceAll(/\{[^}]*\}/g, '{}')}`)
        assert.ok(operation.description, `${verb} ${path} has no comment`)
      }
    }
  }
  const bound = services.flatMap(({ desc }) => desc.methods.flatMap(httpOf))
  assert.deepEqual(
    bound.map(({ httpMethod, path }) => `${httpMethod} ${path.replaceAll(/\{[^}]*\}/g, '{}')}`).sort(),
    [...described].sort(),
  )
})
