import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import { ConfigError, readConfig } from '#config.ts'
import { parseMasterKey } from '#lib/crypto/master-key.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const files = globSync('examples/*.env', { cwd: root })

test('the folder with example settings is not empty', () => assert.ok(files.length >= 2))

for (const file of files) {
  test(`${file} has only valid settings`, () => {
    const config = readConfig(parseEnv(readFileSync(join(root, file), 'utf8')))
    assert.match(config.url, /^https:/)
    // These settings need a proxy in front of the server that ends TLS.
    assert.notDeepEqual(config.trustedProxies, [])
    if (config.masterKey !== '') assert.equal(parseMasterKey(config.masterKey).length, 32)
  })
}

test('refuses an unknown setting', () => {
  assert.throws(() => readConfig({ PINFOLD_LISTNE: 'x' }), ConfigError)
})
