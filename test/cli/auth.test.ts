import assert from 'node:assert/strict'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { ambientToken } from '../../src/cli/iam/outside-token.ts'
import { looseToken, makeHome, secondsFromNow, startFakeSts } from '../support/fake-sts.ts'
import { roleUids, startPinfold } from '../support/pinfold.ts'
import { type Env, program, type Run, run, runProcess } from '../support/process.ts'

const identity = `${'1'.repeat(40)}/${'2'.repeat(16)}`
const other = `${'1'.repeat(40)}/${'3'.repeat(16)}`
const outside = looseToken({ iss: 'https://ci.example', sub: 'job' })
const mode = (file: string): string => (statSync(file).mode & 0o777).toString(8)

async function start() {
  const fake = await startFakeSts()
  const home = makeHome()
  const file = join(home.home, 'token')
  writeFileSync(file, `${outside}\n`)
  const auth = (args: readonly string[], env: Env = {}): Promise<Run> => run(args, { env: { ...home.env, ...env } })
  return {
    ...home,
    fake,
    file,
    auth,
    login: (...args: string[]) =>
      auth(['login', '--api', fake.url, '--identity', identity, '--identity-token', file, ...args]),
    async [Symbol.asyncDispose]() {
      home[Symbol.dispose]()
      await fake[Symbol.asyncDispose]()
    },
  }
}

function assertQuiet({ stdout, stderr }: Run, ...secrets: string[]): void {
  for (const secret of [outside, outside.split('.')[2]!, ...secrets]) {
    assert.ok(!stdout.includes(secret) && !stderr.includes(secret), 'a token was printed')
  }
}

test('login exchanges the token in a file, prints the identity, and stores everything readable only by this user', async () => {
  await using it = await start()
  const signedIn = await it.login('--audience', 'registry.example')
  assert.deepEqual([signedIn.code, signedIn.stderr], [0, ''])
  assert.match(signedIn.stdout, new RegExp(`^identity +${identity}\napi +${it.fake.url}\n`))
  assert.match(signedIn.stdout, /^permission {2}viewer in acme\npermission {2}repo\.list, tag\.list in b{40}$/m)
  assertQuiet(signedIn)

  const [api, registry] = it.fake.exchanges()
  assert.deepEqual([api!.method, api!.bearer, api!.query.get('identity')], ['POST', outside, identity])
  assert.deepEqual([api!.query.getAll('aud'), registry!.query.getAll('aud')], [[it.fake.url], ['registry.example']])
  const files = [it.profile, it.tokenFile(it.fake.url), it.tokenFile('registry.example')]
  assert.deepEqual(files.map(mode), ['600', '600', '600'])
  const folders = files.map((file) => dirname(file))
  assert.deepEqual([...folders, join(it.home, 'cache/pinfold')].map(mode), ['700', '700', '700', '700'])
  const profile = JSON.parse(readFileSync(it.profile, 'utf8'))
  assert.deepEqual(profile, { api: it.fake.url, identity, identityToken: it.file })
  assert.deepEqual(readdirSync(dirname(it.profile)), ['profile.json'])
})

test('makes files and folders unreadable for other users, and replaces a symbolic link in their place', async () => {
  await using it = await start()
  mkdirSync(dirname(it.tokenFile(it.fake.url)), { recursive: true, mode: 0o755 })
  writeFileSync(it.tokenFile(it.fake.url), 'old', { mode: 0o644 })
  mkdirSync(dirname(it.profile), { recursive: true, mode: 0o755 })
  const linked = join(it.home, 'linked')
  const before = JSON.stringify({ api: it.fake.url, identity: other, identityToken: '' })
  writeFileSync(linked, before)
  symlinkSync(linked, it.profile)
  assert.equal((await it.login()).code, 0)
  assert.deepEqual([mode(it.tokenFile(it.fake.url)), mode(it.profile)], ['600', '600'])
  assert.deepEqual([mode(dirname(it.profile)), mode(join(it.home, 'cache/pinfold'))], ['700', '700'])
  assert.deepEqual([lstatSync(it.profile).isFile(), readFileSync(linked, 'utf8')], [true, before])
})

test('a broken profile exits with 78 and prints how to remove it', async () => {
  await using it = await start()
  mkdirSync(dirname(it.profile), { recursive: true })
  writeFileSync(it.profile, '{"api":1}')
  const { code, stderr } = await it.login()
  assert.deepEqual(
    [code, stderr],
    [78, `pinfold: ${it.profile} is not a valid profile; remove it with pinfold logout, then run pinfold login\n`],
  )
  assert.equal((await it.auth(['logout'])).code, 0)
  assert.equal((await it.login()).code, 0)
})

test('tokens print prints only the token, which is cached until shortly before it expires', async () => {
  await using it = await start()
  await it.login()
  const kept = readFileSync(it.tokenFile(it.fake.url), 'utf8')
  const first = await it.auth(['tokens', 'print'])
  assert.deepEqual([first.code, first.stdout, first.stderr], [0, kept, ''])
  assert.equal(it.fake.exchanges().length, 1)

  it.fake.lifetime = 240
  await it.login()
  it.fake.lifetime = 3600
  const { stdout } = await it.auth(['tokens', 'print'])
  assert.equal(stdout, readFileSync(it.tokenFile(it.fake.url), 'utf8'))
  assert.equal(it.fake.exchanges().length, 3)

  // The external token no longer exists, so the command uses the old access token until it expires.
  it.fake.lifetime = 240
  await it.login()
  rmSync(it.file)
  const last = await it.auth(['tokens', 'print'])
  assert.deepEqual([last.code, last.stdout], [0, readFileSync(it.tokenFile(it.fake.url), 'utf8')])
  rmSync(it.tokenFile(it.fake.url))
  const none = await it.auth(['tokens', 'print'])
  assert.deepEqual([none.code, none.stdout], [77, ''])
  assert.match(none.stderr, /^pinfold: the token file .* cannot be read: ENOENT; run pinfold login again\n$/)
})

test('a narrowed token, or one for several audiences, is exchanged each time and never cached', async () => {
  await using it = await start()
  await it.login()
  const kept = readFileSync(it.tokenFile(it.fake.url), 'utf8')
  const scope = 'a'.repeat(40)
  const narrow = ['tokens', 'print', '--scope', scope, '--scope', other, '--capabilities', 'repo.list,tag.list']
  assert.equal((await it.auth(narrow)).code, 0)
  assert.equal(
    (await it.auth(['tokens', 'print', '--audience', it.fake.url, '--audience', 'registry.example'])).code,
    0,
  )
  const [, narrowed, both] = it.fake.exchanges()
  assert.deepEqual(narrowed!.query.getAll('scopes'), [scope, other])
  assert.deepEqual(narrowed!.query.getAll('cap'), ['repo.list', 'tag.list'])
  assert.deepEqual(both!.query.getAll('aud'), [it.fake.url, 'registry.example'])
  assert.equal(readFileSync(it.tokenFile(it.fake.url), 'utf8'), kept)
  assert.equal(readdirSync(join(it.home, 'cache/pinfold')).length, 1)

  // An empty variable in a script must not give the token more rights.
  for (const empty of [
    ['--scope', ''],
    ['--capabilities', ''],
    ['--capabilities', 'repo.list,'],
  ]) {
    const { code, stdout } = await it.auth(['tokens', 'print', ...empty])
    assert.deepEqual([code, stdout], [64, ''])
  }
})

test('a token from standard input is used once and not stored', async () => {
  await using it = await start()
  const script = `printf %s '${outside}' | "${program}" login --api ${it.fake.url} --identity ${identity} --identity-token -`
  const piped = await runProcess(['-c', script], { command: 'sh', env: it.env })
  assert.deepEqual([piped.code, it.fake.exchanges()[0]!.bearer], [0, outside])
  assert.equal((await it.auth(['tokens', 'print'])).code, 0)
  const { code, stderr } = await it.auth(['tokens', 'print', '--audience', 'registry.example'])
  assert.equal(code, 77)
  assert.equal(
    stderr,
    'pinfold: the token of your sign-in came from standard input, so it was not stored; run pinfold login again\n',
  )
})

test('an option has priority over the environment, and the environment over the profile', async () => {
  await using it = await start()
  await using elsewhere = await startFakeSts()
  await it.login()
  const subjects = async (args: string[], env: Env) => {
    const { code, stdout, stderr } = await it.auth(['whoami', '--output', 'json', ...args], env)
    assert.equal(code, 0, stderr)
    const { api, subject } = JSON.parse(stdout)
    return [api, subject]
  }
  const ambient = { PINFOLD_ID_TOKEN: outside }
  assert.deepEqual(await subjects([], {}), [it.fake.url, identity])
  assert.deepEqual(await subjects([], { PINFOLD_IDENTITY: other, ...ambient }), [it.fake.url, other])
  const flags = ['--identity', identity]
  assert.deepEqual(await subjects(flags, { PINFOLD_IDENTITY: other, ...ambient }), [it.fake.url, identity])
  const env = { PINFOLD_API: elsewhere.url, PINFOLD_IDENTITY: other, ...ambient }
  assert.deepEqual(await subjects([], env), [elsewhere.url, other])
  assert.deepEqual(await subjects(['--api', it.fake.url], env), [it.fake.url, other])
})

test('a profile applies only to its own server, and only this server gets the token in its file', async () => {
  await using it = await start()
  await using elsewhere = await startFakeSts()
  await it.login()
  const nobody = await it.auth(['tokens', 'print', '--api', elsewhere.url])
  assert.deepEqual([nobody.code, nobody.stdout], [77, ''])
  assert.match(nobody.stderr, /^pinfold: not signed in: /)
  const named = await it.auth(['tokens', 'print', '--api', elsewhere.url, '--identity', identity])
  assert.deepEqual([named.code, named.stdout], [77, ''])
  assert.deepEqual(elsewhere.seen, [])
})

test('given only an identity, finds the platform token: GitHub before GitLab before Kubernetes', async () => {
  await using it = await start()
  const args = ['login', '--identity', identity]
  const gitLab = { PINFOLD_API: it.fake.url, PINFOLD_ID_TOKEN: outside }
  assert.equal((await it.auth(args, gitLab)).code, 0)
  assert.equal(it.fake.exchanges()[0]!.bearer, outside)

  const gitHub = {
    ...gitLab,
    ACTIONS_ID_TOKEN_REQUEST_URL: `${it.fake.url}/github?api-version=2.0`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'runtime',
  }
  assert.equal((await it.auth(args, gitHub)).code, 0)
  const asked = it.fake.seen.find(({ path }) => path === '/github')!
  assert.deepEqual([asked.bearer, asked.query.get('api-version')], ['runtime', '2.0'])
  assert.equal(asked.query.get('audience'), new URL(it.fake.url).host)
  assert.equal(it.fake.exchanges()[1]!.bearer, looseToken({ for: new URL(it.fake.url).host }))

  const terminal = { env: {}, input: async () => '', print: () => {}, say: () => {}, untilSignaled: async () => {} }
  const [absent, projected] = [join(it.home, 'absent'), it.file]
  assert.equal((await ambientToken(terminal, it.fake.url, [absent, projected])).token, outside)
  await assert.rejects(ambientToken(terminal, it.fake.url, [absent]), (error: Error) => {
    for (const word of ['ACTIONS_ID_TOKEN_REQUEST_URL', 'PINFOLD_ID_TOKEN', absent, '--identity-token']) {
      assert.ok(error.message.includes(word), word)
    }
    return true
  })
})

test('whoami prints the signed-in identity, or exits with 77', async () => {
  await using it = await start()
  for (const args of [['whoami'], ['whoami', '--quick'], ['tokens', 'print']]) {
    const { code, stdout, stderr } = await it.auth(args)
    assert.deepEqual([code, stdout], [77, ''])
    assert.match(stderr, /^pinfold: not signed in: .*\n$/)
  }
  await it.login()
  const seen = it.fake.seen.length
  const quick = await it.auth(['whoami', '--quick', '-o', 'json'])
  assert.equal(quick.code, 0)
  const { issuer, subject, audience } = JSON.parse(quick.stdout)
  assert.deepEqual([issuer, subject, audience, it.fake.seen.length], [it.fake.url, identity, [it.fake.url], seen])
  const full = await it.auth(['whoami'])
  assert.match(full.stdout, /^permission {2}viewer in acme$/m)
  assert.equal(it.fake.seen.length, seen + 1)
  assert.equal((await it.auth(['whoami', '-o', 'yaml'])).code, 64)

  const given = looseToken({ iss: it.fake.url, sub: other, aud: it.fake.url, exp: secondsFromNow(60) })
  const acting = await it.auth(['whoami'], { PINFOLD_TOKEN: given })
  assert.match(acting.stdout, new RegExp(`^identity +${other}$`, 'm'))
  assert.equal(it.fake.seen.at(-1)!.bearer, given)
  const bad = await it.auth(['whoami'], { PINFOLD_TOKEN: `${given} x` })
  assert.deepEqual(
    [bad.code, bad.stderr],
    [78, 'pinfold: PINFOLD_TOKEN is not valid: a token has only ASCII characters, without spaces\n'],
  )

  const exp = secondsFromNow(-1)
  const token = looseToken({ iss: it.fake.url, sub: identity, aud: it.fake.url, exp })
  writeFileSync(it.tokenFile(it.fake.url), token)
  assert.equal((await it.auth(['whoami', '--quick'])).code, 77)
})

test('logout removes one token, or all', async () => {
  await using it = await start()
  await it.login('--audience', 'registry.example')
  assert.equal((await it.auth(['logout', '--audience', 'registry.example'])).code, 0)
  assert.deepEqual([it.tokenFile(it.fake.url), it.tokenFile('registry.example')].map(existsSync), [true, false])
  assert.equal((await it.auth(['logout'])).code, 0)
  assert.deepEqual([readdirSync(join(it.home, 'cache')), readdirSync(join(it.home, 'config'))], [[], []])
  assert.equal((await it.auth(['tokens', 'print'])).code, 77)
  assert.equal((await it.auth(['logout'])).code, 0)
})

test('an audience name cannot escape the cache folder', async () => {
  await using it = await start()
  await it.login()
  for (const audience of ['..', '.', '', 'a b', 'x'.repeat(256)]) {
    for (const command of [['tokens', 'print'], ['logout']]) {
      const { code, stdout } = await it.auth([...command, '--audience', audience])
      assert.deepEqual([code, stdout], [64, ''], `${command} ${audience}`)
    }
  }
  assert.ok(existsSync(it.profile))
})

test('prints a refusal of the server as one line with message, fields and request ID, and never with a token', async () => {
  await using it = await start()
  const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', metadata: { requestId: 'r-1' } }
  const fields = [
    { field: 'aud', description: 'must be one of a, b' },
    { field: 'scopes', description: 'is wrong' },
  ]
  const check = 'check that --api or PINFOLD_API is the URL of a Pinfold server'
  const cases: [status: number, body: unknown, code: number, stderr: string][] = [
    [401, { code: 16, message: `no: ${outside}\u001b[2J`, details: [info] }, 77, 'no: [token] [2J (request ID r-1)\n'],
    [403, { code: 7, message: 'not this one', details: [] }, 77, 'not this one\n'],
    [
      400,
      { code: 3, message: 'aud: must be one of a, b', details: [{ fieldViolations: fields }] },
      1,
      'aud: must be one of a, b\npinfold: scopes: is wrong\n',
    ],
    [429, { code: 8, message: 'too many', details: [{ retryDelay: '3s' }] }, 1, 'too many (try again in 3s)\n'],
    [302, '<html>', 1, `${it.fake.url}/sts/exchange answered 302\n`],
    [200, 'hello', 1, `${it.fake.url}/sts/exchange did not answer with JSON; ${check}\n`],
    [
      200,
      { token: 'not one' },
      1,
      `${it.fake.url} did not answer the token exchange with a token; check that it is a Pinfold server\n`,
    ],
  ]
  for (const [status, body, code, stderr] of cases) {
    it.fake.seen.length = 0
    it.fake.answer = () => ({ status, body })
    const refused = await it.login()
    assert.deepEqual([refused.code, refused.stdout, refused.stderr], [code, '', `pinfold: ${stderr}`])
    assertQuiet(refused)
    assert.equal(it.fake.seen.length, 1)
  }
  assert.deepEqual([existsSync(it.profile), existsSync(join(it.home, 'cache'))], [false, false])
  it.fake.answer = ({ path }) =>
    path === '/auth/v1/ok' ? { status: 501, body: { code: 12, message: 'no' } } : undefined
  assert.equal((await it.login()).code, 1)
  assert.equal(existsSync(it.profile), false)
})

test('tries an unavailable server three times, and exits with 69', async () => {
  await using it = await start()
  const unavailable = { status: 503, body: { code: 14, message: 'not now', details: [] } }
  it.fake.answer = () => (it.fake.seen.length < 3 ? unavailable : undefined)
  assert.equal((await it.login()).code, 0)
  it.fake.seen.length = 0
  it.fake.answer = () => ({ status: 502, body: 'bad gateway' })
  const away = await it.login()
  assert.deepEqual([away.code, it.fake.seen.length], [69, 3])
  // The error code in the body has priority over the status.
  it.fake.seen.length = 0
  it.fake.answer = () => ({ status: 503, body: { code: 13, message: 'broken' } })
  assert.deepEqual([(await it.login()).code, it.fake.seen.length], [1, 1])

  const api = ['--api', 'http://127.0.0.1:9']
  const nobody = await it.auth(['login', ...api, '--identity', identity, '--identity-token', it.file])
  assert.equal(nobody.code, 69)
  assert.match(nobody.stderr, /^pinfold: http:\/\/127\.0\.0\.1:9 cannot be reached: .*\n$/)
  assertQuiet(nobody)
})

test('never sends a token unencrypted, and does not print text that is not a token', async () => {
  await using it = await start()
  const login = (...args: string[]) => it.auth(['login', '--identity', identity, ...args])
  const plain = await login('--api', 'http://registry.example', '--identity-token', it.file)
  assert.deepEqual(
    [plain.code, plain.stderr],
    [
      78,
      'pinfold: nothing was sent: tokens are sent over https only, and http://registry.example is not https\npinfold: set --api or PINFOLD_API to an https:// URL\n',
    ],
  )
  const wrong = await login('--api', 'nonsense', '--identity-token', it.file)
  assert.deepEqual(
    [wrong.code, wrong.stderr],
    [78, 'pinfold: --api must be an http or https URL without a path, such as https://registry.example.com\n'],
  )

  const api = ['--api', it.fake.url]
  writeFileSync(it.file, `${outside}\nsecond line`)
  const lines = await login(...api, '--identity-token', it.file)
  assert.deepEqual(
    [lines.code, lines.stderr],
    [1, `pinfold: not signed in: the content of ${it.file} is not a token\n`],
  )
  const variable = await it.auth(['login', '--identity', identity, ...api], { PINFOLD_ID_TOKEN: `${outside} x` })
  assert.deepEqual(
    [variable.code, variable.stderr],
    [78, 'pinfold: the token is not valid: a token has only ASCII characters, without spaces\n'],
  )
  assertQuiet(variable)
  assert.deepEqual(it.fake.seen, [])
  assert.equal((await it.auth(['login', ...api, '--identity-token', it.file])).code, 64)
  assert.equal((await it.auth(['login', ...api, '--identity', 'me'])).code, 64)
  assert.equal((await it.auth(['tokens', 'print'], { PINFOLD_IDENTITY: 'me' })).code, 78)
})

test('identities check explains each claim, and shows neither the token nor its signature', async () => {
  await using it = await start()
  const claimMatch = { issuer: 'https://ci.example', subjectPattern: 'repo:acme/.*', claims: { ref: 'main' } }
  it.fake.identity = { uid: identity, name: 'ci', claimMatch }
  await it.login()
  const claims = { iss: 'https://ci.example', sub: 'repo:acme/web', aud: it.fake.url, ref: 'main' }
  const check = async (change: object, ...args: string[]) => {
    const token = looseToken({ ...claims, exp: secondsFromNow(600), iat: secondsFromNow(0), ...change })
    writeFileSync(it.file, token)
    const result = await run(['identities', 'check', identity, '--token-file', it.file, ...args], {
      env: it.env,
    })
    assertQuiet(result, token, ...token.split('.'))
    return result
  }
  const good = await check({})
  assert.deepEqual([good.code, good.stderr], [0, ''])
  assert.match(good.stdout, /^ok +sub +repo:acme\/web +pattern repo:acme\/\.\*$/m)

  const wrong: [change: object, line: RegExp][] = [
    [{ iss: 'https://ci.example/' }, /^no {2}iss /m],
    [{ sub: 'x-repo:acme/web' }, /^no {2}sub /m],
    [
      { aud: 'https://elsewhere.example' },
      /^no {2}aud .* http:\/\/127\.0\.0\.1:\d+ or 127\.0\.0\.1:\d+ or 127\.0\.0\.1$/m,
    ],
    [{ ref: 'dev\u001b[2J' }, /^no {2}ref +dev \[2J +main$/m],
    [{ ref: undefined }, /^no {2}ref +\(none\) +main$/m],
    [{ exp: secondsFromNow(-3600) }, /^no {2}exp /m],
    [{ exp: undefined }, /^no {2}exp +\(none\)/m],
    [{ nbf: secondsFromNow(3600) }, /^no {2}nbf /m],
  ]
  for (const [change, line] of wrong) {
    const { code, stdout } = await check(change)
    assert.equal(code, 1, stdout)
    assert.match(stdout, line)
    assert.match(stdout, /^the token does not match$/m)
  }
  const { stdout } = await check({ sub: 'x' }, '-o', 'json')
  const { matches, checks } = JSON.parse(stdout)
  assert.deepEqual([matches, checks[1].claim, checks[1].matches], [false, 'sub', false])

  it.fake.identity = { uid: identity, name: 'aws', awsIdentity: { awsAccount: '1'.repeat(12) } }
  assert.equal((await check({})).code, 1)
  writeFileSync(it.file, 'something.that.is-not-one')
  const broken = await run(['identities', 'check', identity, '--token-file', it.file], { env: it.env })
  assert.deepEqual([broken.code, broken.stdout], [1, ''])
  assert.match(broken.stderr, /^pinfold: the token cannot be read: [^.]*\n$/)
})

test('help and completion include two-word commands and the values of their options', async () => {
  const complete = async (...words: string[]) => (await runProcess(['complete', '--', ...words])).stdout
  assert.match(await complete('tokens', ''), /^print\t[\s\S]*^push\t[\s\S]*^pull\t/m)
  assert.match(await complete('login', '--'), /^--identity-token\t[\s\S]*^--audience\t/m)
  assert.match(await complete('whoami', '--output', ''), /^table\t[\s\S]*^json\t/m)
  assert.match((await run(['login', '--help'])).stdout, /^Usage: pinfold login /)
  const [bare, unknown] = [await run(['tokens']), await run(['login', '--nope'])]
  assert.deepEqual([bare.code, unknown.code], [64, 64])
  assert.match(unknown.stderr, /^pinfold: unknown option '--nope'\n\(see pinfold login --help\)\n$/)
})

test('the server ignores settings for commands', async () => {
  using home = makeHome()
  const env = {
    ...home.env,
    PINFOLD_API: 'x',
    PINFOLD_IDENTITY: 'x',
    PINFOLD_ID_TOKEN: 'x',
    PINFOLD_TOKEN: 'x',
    PINFOLD_LOG_LEVEL: 'warn',
  }
  const { code, stderr } = await run(['migrate', '--data', join(home.home, 'data')], { env })
  assert.equal(code, 0)
  assert.equal(stderr, '')
})

test('a CI job signs in to a real server with a token signed by its own key, and signs out', async () => {
  await using pinfold = await startPinfold()
  using home = makeHome()
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const issuer = 'https://ci.example'
  const issuerKeys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'one' }] })
  const org = (await pinfold.operator.post('/iam/v2/groups/', { name: 'acme' })).body.uid
  const staticKeys = { issuer, subject: 'job', issuerKeys }
  const { uid } = (await pinfold.operator.post(`/iam/v2/identities/${org}`, { name: 'job', staticKeys })).body
  await pinfold.operator.post(`/iam/v2/roleBindings/${org}`, { identityUid: uid, roleUid: roleUids.viewer })
  const sign = (subject: string) =>
    new SignJWT({})
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .setIssuer(issuer)
      .setSubject(subject)
      .setAudience(pinfold.url)
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(privateKey)
  const file = join(home.home, 'token')
  writeFileSync(file, await sign('job'))
  const cli = (...args: string[]) => run(args, { env: { ...home.env, PINFOLD_API: pinfold.url } })

  const signedIn = await cli('login', '--identity', uid, '--identity-token', file)
  assert.equal(signedIn.code, 0, signedIn.stderr)
  assert.match(signedIn.stdout, /^permission {2}viewer in acme$/m)
  const checked = await cli('identities', 'check', uid, '--token-file', file)
  assert.equal(checked.code, 0, checked.stdout + checked.stderr)
  const token = (await cli('tokens', 'print')).stdout.trim()
  assert.equal((await pinfold.withToken(token).get('/registry/v2/repos')).status, 200)
  const narrowed = (await cli('tokens', 'print', '--capabilities', 'groups.list', '--scope', org)).stdout.trim()
  assert.equal((await pinfold.withToken(narrowed).get(`/iam/v2/groups/${org}`)).status, 200)
  assert.equal((await pinfold.withToken(narrowed).get(`/iam/v2/identities/${uid}`)).status, 403)
  const named = (await cli('tokens', 'print', '--capabilities', 'groups.list', '--scope', 'acme')).stdout.trim()
  assert.equal((await pinfold.withToken(named).get(`/iam/v2/groups/${org}`)).status, 200)
  assert.match(
    (await cli('tokens', 'print', '--scope', 'nowhere')).stderr,
    /there is no organization nowhere that you can/,
  )
  assert.equal((await cli('tokens', 'print', '--scope', '')).code, 64)
  assert.equal((await cli('identities', 'check', 'acme/job', '--token-file', file)).code, 0)

  writeFileSync(file, await sign('another'))
  assert.equal((await cli('identities', 'check', uid, '--token-file', file)).code, 1)
  const refused = await cli('login', '--identity', uid, '--identity-token', file)
  assert.deepEqual([refused.code, refused.stdout], [77, ''])
  assert.equal((await cli('logout')).code, 0)
  assert.equal((await cli('whoami')).code, 77)
})
