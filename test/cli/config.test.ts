// Defaults of a user for all commands.
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { makeHome } from '../support/fake-sts.ts'
import { startPinfold } from '../support/pinfold.ts'
import { type Env, run } from '../support/process.ts'

let pinfold: Awaited<ReturnType<typeof startPinfold>>
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

function atHome() {
  const home = makeHome()
  const file = join(home.env.XDG_CONFIG_HOME!, 'pinfold', 'config.json')
  const cli = (args: readonly string[], env: Env = {}) => run(args, { env: { ...home.env, ...env } })
  const config = (...args: string[]) => cli(['config', ...args])
  const done = async (...args: string[]) => {
    const { code, stdout, stderr } = await config(...args)
    assert.deepEqual([code, stderr], [0, ''], args.join(' '))
    return stdout
  }
  return { file, cli, config, done, [Symbol.dispose]: () => home[Symbol.dispose]() }
}

test('shows settings with their origin, stores them for this user only, and resets them to their defaults', async () => {
  using it = atHome()
  assert.match(await it.done('view'), /^platform\.api +- +default$/m)
  assert.equal(await it.done('view', '--diff'), '')
  assert.equal(existsSync(it.file), false)
  await it.done('set', 'platform.api', 'https://registry.example.com/')
  await it.done('set', 'output.format', 'json')
  assert.equal(statSync(it.file).mode & 0o777, 0o600)
  assert.match(await it.done('view', '-o', 'table'), /^platform\.api +https:\/\/registry\.example\.com +file$/m)
  const shown = await it.cli(['config', 'view', '--diff'], { PINFOLD_API: 'https://other.example' })
  assert.deepEqual(JSON.parse(shown.stdout), {
    file: it.file,
    items: [
      { key: 'platform.api', value: 'https://other.example', from: 'PINFOLD_API' },
      { key: 'output.format', value: 'json', from: 'file' },
    ],
  })
  const saved = await it.cli(['config', 'save'], { PINFOLD_API: 'https://other.example' })
  assert.equal(saved.code, 0, saved.stderr)
  const kept = { 'output.format': 'json', 'platform.api': 'https://other.example' }
  assert.deepEqual(JSON.parse(readFileSync(it.file, 'utf8')), kept)
  await it.done('unset', 'output.format')
  await it.done('unset', 'output.format')
  assert.match(await it.done('view'), /^output\.format +table +default$/m)
  const asked = await it.config('reset')
  assert.deepEqual([asked.code, existsSync(it.file)], [64, true])
  await it.done('reset', '--yes')
  assert.equal(existsSync(it.file), false)
})

test('reads files that begin with a byte order mark, as editors on Windows write them', async () => {
  using it = atHome()
  mkdirSync(dirname(it.file), { recursive: true })
  writeFileSync(it.file, '\ufeff{"output.format":"json"}\r\n')
  assert.match(await it.done('view', '-o', 'table'), /^output\.format +json +file$/m)

  const docker = dirname(it.file)
  writeFileSync(it.file, '\ufeff{"auths":{}}')
  const env = { DOCKER_CONFIG: docker, PINFOLD_API: 'https://registry.example.com' }
  const { code, stderr } = await run(['docker', 'configure'], { env })
  assert.equal(code, 0, stderr)
  const helpers = { 'registry.example.com': 'pinfold' }
  assert.deepEqual(JSON.parse(readFileSync(it.file, 'utf8')), { auths: {}, credHelpers: helpers })
})

test('refuses unknown keys and invalid values, and lists the valid ones', async () => {
  using it = atHome()
  for (const [args, says] of [
    [
      ['set', 'platform.apl', 'x'],
      /platform\.apl is not a key; the keys are platform\.api, default\.group, output\.format/,
    ],
    [['set', '__proto__', 'x'], /is not a key/],
    [['unset', 'nothing'], /nothing is not a key/],
    [['set', 'platform.api', 'here'], /platform\.api must be an http or https URL/],
    [['set', 'platform.api', ''], /platform\.api must be an http or https URL/],
    [['set', 'default.group', '\u001b[31m'], /default\.group must be an organization or a folder/],
    [['set', 'output.format', 'yaml'], /output\.format must be one of: table, wide, json/],
    [['veiw'], /unknown command 'veiw'\n.*Did you mean view\?/],
    [['edit'], /no editor was started: set VISUAL or EDITOR, or edit the file .*config\.json/],
  ] as const) {
    const { code, stdout, stderr } = await it.cli(['config', ...args], { VISUAL: '', EDITOR: '' })
    assert.deepEqual([code, stdout], [64, ''], stderr)
    assert.match(stderr, says)
  }
  assert.equal(existsSync(it.file), false)
})

test('commands report an unusable settings file, which can be repaired with an editor', async () => {
  using it = atHome()
  mkdirSync(dirname(it.file), { recursive: true })
  for (const [text, says] of [
    ['{', /the content must be a JSON object with strings/],
    ['[]', /the content must be a JSON object with strings/],
    ['{"platform.api":1}', /platform\.api must be an http or https URL/],
    ['{"colour":"red","output.format":"x"}', /colour is not a key.*\n.*output\.format must be one of/],
  ] as const) {
    writeFileSync(it.file, text)
    for (const args of [['config', 'validate'], ['config', 'view'], ['whoami']]) {
      const { code, stdout, stderr } = await it.cli(args)
      assert.deepEqual([code, stdout], [78, ''], args.join(' '))
      assert.match(stderr, says)
      assert.match(stderr, /to correct it: pinfold config edit; to remove it: pinfold config reset/)
    }
    assert.equal((await it.cli(['--version'])).code, 0)
  }
  const editor = join(dirname(it.file), 'editor.sh')
  writeFileSync(editor, '#!/bin/sh\necho \'{"output.format":"csv"}\' >"$2"\n')
  chmodSync(editor, 0o755)
  const edited = await it.cli(['config', 'edit'], { VISUAL: '', EDITOR: `${editor} --wait` })
  assert.deepEqual([edited.code, edited.stderr], [0, ''])
  await it.done('validate')
  const broken = await it.cli(['config', 'edit'], { VISUAL: 'sh -c \'echo [] >"$1"\' sh', EDITOR: '' })
  assert.equal(broken.code, 78)
  const failing = await it.cli(['config', 'edit'], { VISUAL: 'false' })
  assert.equal(failing.code, 1)
})

test('commands read server, group and format from the settings, unless options or the environment set them', async () => {
  using it = atHome()
  const org = (await pinfold.seed.group('', { name: 'acme' })).uid
  const env = { PINFOLD_TOKEN: pinfold.operator.token! }
  await it.done('set', 'platform.api', pinfold.url)
  await it.done('set', 'default.group', 'acme')
  await it.done('set', 'output.format', 'terse')
  const made = await it.cli(['folders', 'create', 'team'], env)
  assert.deepEqual([made.code, made.stdout], [0, 'team\n'], made.stderr)
  const listed = await it.cli(['folders', 'list', '--in', 'acme'], env)
  assert.equal(listed.stdout, 'team\n', listed.stderr)
  const csv = await it.cli(['folders', 'list', '--in', 'acme', '-o', 'csv'], env)
  assert.match(csv.stdout, /^FOLDER,/)
  const elsewhere = await it.cli(['folders', 'list', '--in', 'acme'], { ...env, PINFOLD_API: 'http://127.0.0.1:9' })
  assert.deepEqual([elsewhere.code, elsewhere.stdout], [69, ''])
  const flagged = await it.cli(['folders', 'list', '--in', 'acme', '--api', pinfold.url, '-o', 'id'], {
    ...env,
    PINFOLD_API: 'http://127.0.0.1:9',
  })
  assert.match(flagged.stdout, new RegExp(`^${org}/`))
  // A command that does not support the format prints its default one.
  await it.done('set', 'output.format', 'env')
  assert.match((await it.cli(['folders', 'list', '--in', 'acme'], env)).stdout, /^FOLDER /)
  // A command that deletes never reads the group from the settings.
  const expired = await it.cli(['identities', 'delete', '--expired', '--yes'], env)
  assert.equal(expired.code, 64)
  assert.match(expired.stderr, /--in is missing: name an organization or a folder/)
})

test('without a command, config lists the settings of a server as before, with a warning', async () => {
  using it = atHome()
  const settings = await it.cli(['server', 'config'])
  assert.match(settings.stdout, /^PINFOLD_LISTEN \(--listen\)$/m)
  for (const [args, former] of [
    [[], 'pinfold config without a command'],
    [['settings'], 'pinfold config settings'],
  ] as const) {
    const { code, stdout, stderr } = await it.config(...args)
    assert.deepEqual([code, stdout], [0, settings.stdout])
    assert.equal(stderr, `pinfold: ${former} is deprecated; use pinfold server config\n`)
  }
})
