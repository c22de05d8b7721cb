import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { summaries } from '#cli/summaries.ts'
import { createStorage, program, project, run, runProcess } from '../support/process.ts'

test('prints help to standard output, or to standard error if a command is missing', async () => {
  for (const args of [['help'], ['--help'], ['help', 'serve'], ['token', '--help']]) {
    const { code, stdout, stderr } = await run(args)
    assert.deepEqual([code, stderr], [0, ''], args.join(' '))
    assert.match(stdout, /^Usage: pinfold/)
  }
  const bare = await runProcess([])
  assert.equal(bare.code, 64)
  assert.equal(bare.stdout, '')
  assert.match(bare.stderr, /^Usage: pinfold[\s\S]*login[\s\S]*repos[\s\S]*serve[\s\S]*migrate[\s\S]*complete/)
})

test('help about an unknown command exits with 64 and prints no other help', async () => {
  const cases: [string[], string][] = [
    [['help', 'nope'], "pinfold: unknown command 'nope'; pinfold --help lists the commands\n"],
    [['nope', '--help'], "pinfold: unknown command 'nope'; pinfold --help lists the commands\n"],
    [['help', 'repos', 'nope'], "pinfold: unknown command 'nope'; pinfold repos --help lists the commands\n"],
    [['repos', 'nope', '-h'], "pinfold: unknown command 'nope'; pinfold repos --help lists the commands\n"],
  ]
  for (const [args, message] of cases) {
    assert.deepEqual(await run(args), { code: 64, stdout: '', stderr: message })
  }
  for (const args of [
    ['help', 'repos', 'list'],
    ['tags', 'list', 'acme/web', '--help'],
    ['help', 'config'],
  ]) {
    assert.equal((await run(args)).code, 0, args.join(' '))
  }
})

test('every command and group in the table shows its summary in its help', async () => {
  for (const [path, summary] of Object.entries(summaries)) {
    const { code, stdout } = await run([...path.split(' '), '--help'])
    const isGroup = Object.keys(summaries).some((other) => other.startsWith(`${path} `))
    assert.equal(code, 0, path)
    assert.match(stdout, new RegExp(`^Usage: pinfold ${path}${isGroup ? ' .*' : '( .*)?'}\n`), path)
    assert.ok(stdout.replace(/\s+/g, ' ').includes(summary), path)
  }
})

test('wrong usage exits with 64, one error line and a link to the help', async () => {
  const wrong: [string[], RegExp][] = [
    [['nope'], /^pinfold: unknown command 'nope'\n\(see pinfold --help\)\n$/],
    [['serve', '--nope'], /^pinfold: unknown option '--nope'\n\(see pinfold serve --help\)\n$/],
    [['serve', 'more'], /^pinfold: too many arguments for 'serve'/],
    [['token', '--identity'], /^pinfold: option '--identity <uid>' argument missing\n/],
    [['complete', 'tcsh'], /^pinfold: .*'tcsh' is invalid/],
  ]
  for (const [args, message] of wrong) {
    const { code, stdout, stderr } = await run(args)
    assert.deepEqual([code, stdout], [64, ''], args.join(' '))
    assert.match(stderr, message)
  }
})

test('lists all invalid settings at once, with exit code 78', async () => {
  const env = {
    PINFOLD_LISTEN: 'here',
    PINFOLD_METRICS: 'perhaps',
    PINFOLD_LOGLEVEL: 'info',
    PINFOLD_MASTER_KEY: 'abc',
  }
  const { code, stderr } = await runProcess(['serve', '--url', 'ftp://x', '--data', ''], { env })
  assert.equal(code, 78)
  assert.deepEqual(stderr.trim().split('\n'), [
    'pinfold: PINFOLD_LISTEN must be HOST:PORT, such as 0.0.0.0:8080, not "here"',
    'pinfold: --url must be an http or https URL without a path, such as https://registry.example.com',
    'pinfold: --data must be the path of a folder',
    'pinfold: PINFOLD_MASTER_KEY must be 32 bytes, as base64 or hex; openssl rand -base64 32 makes such a key',
    'pinfold: PINFOLD_METRICS must be on or off, not "perhaps"',
    'pinfold: PINFOLD_LOGLEVEL is not a setting; did you mean PINFOLD_LOG_LEVEL?',
  ])
})

test('refuses a database URL without a master key, and an invalid database URL', async () => {
  for (const command of ['serve', 'token', 'migrate']) {
    const { code, stderr } = await run([command, '--database', 'postgres://127.0.0.1/none'])
    assert.equal(code, 78)
    assert.match(stderr, /^pinfold: PINFOLD_MASTER_KEY is missing: .*; set it to 32 random bytes, such as .*\n$/)
  }
  const wrong = await runProcess(['serve', '--database', 'mysql://127.0.0.1/none'])
  assert.equal(wrong.code, 78)
  assert.match(wrong.stderr, /^pinfold: --database must be a postgres:\/\/ URL, such as postgres:.*\n$/)
})

test('a command without access to its database exits with 69 and one line without the password', async () => {
  const env = { PINFOLD_MASTER_KEY: 'a'.repeat(64) }
  const { code, stderr } = await run(['migrate', '--database', 'postgres://me:secret@127.0.0.1:1/none'], { env })
  assert.equal(code, 69)
  assert.match(stderr, /^pinfold: the database is unavailable: .*ECONNREFUSED.*\n$/)
  assert.doesNotMatch(stderr, /secret/)
})

test('the list of settings names each setting with its default', async () => {
  const { code, stdout } = await runProcess(['server', 'config'])
  assert.equal(code, 0)
  assert.match(stdout, /^PINFOLD_LISTEN \(--listen\)\n {4}.*Default: 127\.0\.0\.1:8080\.$/m)
  assert.match(
    stdout,
    /^PINFOLD_SCANNERS_PRIVATE\n {4}Private hosts of scanners \(docs\/reference\/vulnerabilities\.md\)\.$/m,
  )
})

test('help and the list of settings contain no Markdown in a terminal', async () => {
  const printed = await Promise.all(
    [
      ['server', 'config'],
      ['serve', '--help'],
      ['server', 'backup', '--help'],
    ].map((args) => run(args)),
  )
  for (const { code, stdout } of printed) {
    assert.equal(code, 0)
    assert.doesNotMatch(stdout, /\]\(|`/)
    assert.match(
      stdout.replace(/\s+/g, ' '),
      /URL of a PostgreSQL database, postgres:\/\/…\. Default: the embedded database/,
    )
  }
})

test('a reader that closes the output early causes no error', async () => {
  const { code, stderr } = await runProcess(['-c', `"${program}" server config | head -n 1; echo "$?" >&2`], {
    command: 'sh',
  })
  assert.deepEqual([code, stderr], [0, '0\n'])
})

test('the program finds its files and Node through a symbolic link and from another folder', async () => {
  await using storage = await createStorage()
  const link = join(storage.data, 'pinfold')
  symlinkSync(program, link)
  // Clients of another product look for one of its name.
  const named = join(storage.data, 'acmectl')
  symlinkSync(program, named)
  const helper = join(storage.data, 'docker-credential-acme')
  symlinkSync(join(project, 'bin/docker-credential-pinfold'), helper)
  const unknown = await runProcess(['get'], { command: helper, cwd: tmpdir(), input: 'https://nobody.example\n' })
  assert.match(unknown.stdout + unknown.stderr, /credentials not found/)
  for (const command of [link, named, program]) {
    const { code, stdout } = await runProcess(['--version'], { command, cwd: tmpdir() })
    assert.equal(code, 0)
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/)
  }
})

test('completion offers commands and options, and prints a script for each shell', async () => {
  const commands = await runProcess(['complete', '--', ''])
  assert.match(commands.stdout, /^login\t[\s\S]*^repos\t[\s\S]*^serve\t[\s\S]*^token\t/m)
  const options = await runProcess(['complete', '--', 'token', '--'])
  assert.match(options.stdout, /^--identity\t[\s\S]*^--audience\t/m)
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await runProcess(['complete', shell])
    assert.equal(code, 0)
    assert.match(stdout, new RegExp(`${shell} completion for pinfold`))
  }
})

test('variables that commands print for a shell are not reported later as misspelled settings', async () => {
  await using storage = await createStorage()
  const read = { PINFOLD_ORGANIZATION_ID: 'a', PINFOLD_ROLE_BINDING_NAME: 'b', PINFOLD_OCI_TOKEN: 'c' }
  const { code, stderr } = await run(['migrate', ...storage.args], { env: { ...storage.env, ...read } })
  assert.deepEqual([code, stderr], [0, ''])
  const misspelt = await run(['migrate', ...storage.args], { env: { ...storage.env, PINFOLD_METRIC_TOKEN: 'x' } })
  assert.equal(misspelt.stderr, 'pinfold: PINFOLD_METRIC_TOKEN is not a setting; did you mean PINFOLD_METRICS_TOKEN?\n')
})

test('migrate prepares a database and can run again', async () => {
  await using storage = await createStorage({ isEmpty: true })
  for (let i = 0; i < 2; i++) {
    const { code, stdout } = await run(['migrate', ...storage.args], { env: storage.env })
    assert.deepEqual([code, stdout], [0, 'the database is up to date\n'])
  }
})
