// Sign-in of people from the command line: with a browser on the same machine, or with a code to enter in a browser elsewhere.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBrowser } from '../support/browser.ts'
import { claimsOf } from '../support/exchange.ts'
import { ok } from '../support/expect.ts'
import { makeHome } from '../support/fake-sts.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { cleanEnv, type Env, program, project, run, runProcess } from '../support/process.ts'
import { type SignInScene, startSignInScene } from '../support/sign-in.ts'

const second = 1000
let time = Date.now()
let scene: SignInScene
before(async () => {
  scene = await startSignInScene({ clock: () => new Date(time) })
})
after(() => scene[Symbol.asyncDispose]())
beforeEach(() => {
  time = Date.now()
})

/** A user of the command line. The fake browser records the URL to open. */
function user() {
  const home = makeHome()
  const asked = join(home.home, 'asked')
  const browser = join(home.home, 'browser')
  writeFileSync(browser, `#!/bin/sh\nprintf %s "$1" > '${asked}.part' && mv '${asked}.part' '${asked}'\n`)
  chmodSync(browser, 0o755)
  const children: ChildProcess[] = []
  const env: Env = { ...home.env, PINFOLD_API: scene.pinfold.url, BROWSER: browser }
  const command = (...args: string[]) => run(args, { env })
  return {
    home,
    env,
    command,
    /** Runs a command that waits for the user; `seen` resolves once its output or the browser URL matches. */
    start(...args: string[]) {
      rmSync(asked, { force: true })
      const child = spawn(program, args, { cwd: project, env: cleanEnv(env), stdio: ['ignore', 'pipe', 'pipe'] })
      children.push(child)
      const output = { stdout: '', stderr: '' }
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output.stdout += text
      })
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        output.stderr += text
      })
      const done = once(child, 'close').then(([code]) => ({ code: code as number, ...output }))
      const seen = async (what: () => string | undefined): Promise<string> => {
        while (child.exitCode === null) {
          const found = what()
          if (found !== undefined) return found
          await sleep(20)
        }
        throw new Error(`the command has ended: ${output.stdout}${output.stderr}`)
      }
      return {
        done,
        toOpen: () => seen(() => (existsSync(asked) ? readFileSync(asked, 'utf8') : undefined)),
        says: (pattern: RegExp) => seen(() => pattern.exec(output.stderr)?.[1]),
      }
    },
    sessionFile: () => {
      const folder = join(home.home, 'config/pinfold/sessions')
      const [name] = existsSync(folder) ? readdirSync(folder).filter((one) => one.endsWith('.json')) : []
      return name === undefined ? undefined : join(folder, name)
    },
    [Symbol.dispose]() {
      for (const child of children) child.kill()
      home[Symbol.dispose]()
    },
  }
}

type User = ReturnType<typeof user>

async function login({ start }: User, ...args: string[]) {
  const signingIn = start('login', '--org', 'acme.example', ...args)
  await openBrowser().go(await signingIn.toOpen())
  const done = await signingIn.done
  assert.equal(done.code, 0, done.stderr)
  return done
}

const sessionOf = (someone: User): Json => JSON.parse(readFileSync(someone.sessionFile()!, 'utf8'))
const mode = (file: string): string => (statSync(file).mode & 0o777).toString(8)

test('login opens the browser and stores a session for this user only, which each command uses', async () => {
  using me = user()
  const { uid } = scene.somebody()
  const signingIn = me.start('login', '--org', 'acme.example')
  const address = await signingIn.toOpen()
  const told = await signingIn.says(/go to\n(http\S+)/)
  assert.equal(told, address)
  const { searchParams } = new URL(address)
  const redirect = searchParams.get('redirect_uri')!
  assert.match(redirect, /^http:\/\/127\.0\.0\.1:\d+\/callback$/)
  // A callback with a wrong state is ignored, and the command keeps waiting.
  assert.equal((await fetch(`${redirect}?code=x&state=y`)).status, 404)
  assert.equal((await fetch(redirect.replace('/callback', '/'))).status, 404)
  const shown = await openBrowser().go(address)
  assert.match(shown.text, /You can close this page/)
  const { code, stdout, stderr } = await signingIn.done
  assert.equal(code, 0, stderr)
  assert.match(stdout, new RegExp(`^identity +${uid}\n`))

  const file = me.sessionFile()!
  assert.deepEqual([mode(file), mode(join(file, '..'))], ['600', '700'])
  const kept = sessionOf(me)
  assert.deepEqual(Object.keys(kept), ['api', 'identity', 'refreshToken'])
  for (const secret of [kept.refreshToken, JSON.parse(Buffer.from(kept.refreshToken, 'base64').toString()).fam]) {
    assert.ok(!(stdout + stderr).includes(secret))
  }
  assert.match((await me.command('whoami')).stdout, new RegExp(uid))
  assert.match((await me.command('whoami', '--quick')).stdout, new RegExp(uid))
  assert.match((await me.command('sessions', 'list')).stdout, /this session/)
  const { host } = new URL(scene.pinfold.url)
  const docker = await runProcess(['get'], {
    env: me.env,
    input: host,
    command: join(project, 'bin/docker-credential-pinfold'),
  })
  const { Secret } = JSON.parse(docker.stdout)
  assert.deepEqual([claimsOf(Secret).sub, claimsOf(Secret).aud], [uid, host])
  const narrowed = await me.command('tokens', 'print', '--capabilities', 'repo.list')
  assert.equal(claimsOf(narrowed.stdout.trim()).narrowed, true)
  // A token of another identity takes precedence over the session.
  const other = await scene.pinfold.tokenFor((await scene.pinfold.seed.person()).uid)
  const before = await run(['whoami', '-o', 'json'], { env: { ...me.env, PINFOLD_TOKEN: other } })
  assert.equal(JSON.parse(before.stdout).subject, claimsOf(other).sub)
})

test('twenty concurrent commands keep one session, and an old refresh token ends it', async () => {
  using me = user()
  scene.somebody()
  await login(me)
  const first = sessionOf(me).refreshToken
  const { host } = new URL(scene.pinfold.url)
  const tokens = await Promise.all(
    Array.from({ length: 20 }, () => me.command('tokens', 'print', '--audience', host, '--capabilities', 'repo.list')),
  )
  for (const { code, stderr } of tokens) assert.equal(code, 0, stderr)
  assert.equal(new Set(tokens.map(({ stdout }) => claimsOf(stdout.trim()).sid)).size, 1)
  assert.equal((await me.command('whoami')).code, 0)
  const folder = join(me.sessionFile()!, '..')
  assert.deepEqual(
    readdirSync(folder).filter((name) => !name.endsWith('.json')),
    [],
  )

  // The first refresh token was stolen, and the thief uses it late.
  time += 11 * second
  const stolen = scene.pinfold.withToken(first)
  assert.equal((await stolen.post(`/sts/exchange_refresh_token?aud=${host}`)).status, 401)
  const over = await me.command('tokens', 'print', '--audience', host)
  assert.deepEqual(
    [over.code, over.stderr],
    [77, 'pinfold: not signed in: your session has ended; run pinfold login\n'],
  )
  assert.equal(me.sessionFile(), undefined)
})

test('logout ends the session on the server', async () => {
  using me = user()
  scene.somebody()
  await login(me)
  const token = (await me.command('tokens', 'print')).stdout.trim()
  const { refreshToken } = sessionOf(me)
  ok(await scene.pinfold.withToken(token).get('/auth/v1/ok'))
  assert.deepEqual(await me.command('logout'), { code: 0, stdout: '', stderr: '' })
  assert.equal((await scene.pinfold.withToken(token).get('/auth/v1/ok')).status, 401)
  const { host } = new URL(scene.pinfold.url)
  const again = await scene.pinfold.withToken(refreshToken).post(`/sts/exchange_refresh_token?aud=${host}`)
  assert.equal(again.status, 401)
  assert.equal((await me.command('whoami')).code, 77)
  assert.deepEqual(readdirSync(join(me.home.home, 'config')), [])
})

test('account delete asks for confirmation, deletes the account and its session, and removes its files', async () => {
  using me = user()
  const { uid } = scene.somebody()
  await login(me)
  const token = (await me.command('tokens', 'print')).stdout.trim()
  const account = `the account ${uid} at ${scene.pinfold.url}`
  const asked = await me.command('account', 'delete')
  assert.deepEqual([asked.code, asked.stdout], [64, ''])
  assert.equal(
    asked.stderr,
    `pinfold: nothing was changed: this would delete ${account}, with all its roles and sessions, and there is no terminal to confirm it; add --yes\n`,
  )
  assert.equal((await me.command('whoami')).code, 0)
  const done = { code: 0, stdout: `deleted ${account}\n`, stderr: '' }
  assert.deepEqual(await me.command('account', 'delete', '--yes'), done)
  assert.equal((await scene.pinfold.withToken(token).get('/auth/v1/ok')).status, 401)
  assert.equal((await scene.pinfold.operator.get(`/iam/v2/identities/${uid}`)).status, 404)
  assert.deepEqual(readdirSync(join(me.home.home, 'config')), [])
  assert.equal((await me.command('whoami')).code, 77)
})

test('account delete changes nothing for a workload or the last owner', async () => {
  using me = user()
  const { seed, tokenFor } = scene.pinfold
  const org = (await seed.group()).uid
  const owner = (await seed.person()).uid
  await seed.binding(org, owner, roleUids.owner)
  const workload = (await seed.identity(org)).uid
  for (const [uid, said] of [
    [owner, /last owner/],
    [workload, /is the identity of a workload and has no account/],
  ] as const) {
    const env = { ...me.env, PINFOLD_TOKEN: await tokenFor(uid) }
    const refused = await run(['account', 'delete', '--yes'], { env })
    assert.deepEqual([refused.code === 0, refused.stdout], [false, ''])
    assert.match(refused.stderr, said)
    assert.equal((await scene.pinfold.operator.get(`/iam/v2/identities/${uid}`)).status, 200)
  }
})

test('a new login ends the previous session', async () => {
  using me = user()
  scene.somebody()
  await login(me)
  const token = (await me.command('tokens', 'print')).stdout.trim()
  await login(me)
  assert.equal((await scene.pinfold.withToken(token).get('/auth/v1/ok')).status, 401)
  assert.equal((await me.command('whoami')).code, 0)
})

test('logout ends the session of a person even if the settings or the profile now name another identity', async () => {
  using me = user()
  scene.somebody()
  const { url } = scene.pinfold
  const other = scene.somebody().uid
  const profile = join(me.home.home, 'config/pinfold/profile.json')
  const refresh = async ({ refreshToken }: Json) =>
    (await scene.pinfold.withToken(String(refreshToken)).post(`/sts/exchange_refresh_token?aud=${url}`)).status
  const states: [Env, profile: Json | string | undefined][] = [
    [{ PINFOLD_IDENTITY: other }, undefined],
    [{ PINFOLD_IDENTITY: 'nobody' }, undefined],
    [{}, { api: url, identity: other, identityToken: '' }],
    [{}, 'not a profile'],
  ]
  for (const [env, content] of states) {
    await login(me)
    const session = sessionOf(me)
    if (content !== undefined) {
      writeFileSync(profile, typeof content === 'string' ? content : JSON.stringify(content))
      rmSync(join(me.home.home, 'cache'), { recursive: true, force: true })
    }
    const left = await run(['logout'], { env: { ...me.env, ...env } })
    assert.deepEqual([left.code, left.stderr, me.sessionFile()], [0, '', undefined])
    assert.equal(await refresh(session), 401, JSON.stringify([env, content]))
  }

  await login(me)
  const session = sessionOf(me)
  writeFileSync(profile, JSON.stringify({ api: url, identity: other, identityToken: '' }))
  await login(me)
  assert.equal(await refresh(session), 401)
  assert.equal((await me.command('whoami')).code, 0)
})

test('without a browser, and with --device, login shows a code to enter elsewhere', async () => {
  using me = user()
  const { uid } = scene.somebody()
  const { url } = scene.pinfold
  const begin = async (env: Env, ...args: string[]) => {
    Object.assign(me.env, env)
    const signingIn = me.start('login', '--org', 'acme.example', ...args)
    assert.equal(await signingIn.says(/Go to (\S+) and enter/), `${url}/ui/device`)
    return { signingIn, code: await signingIn.says(/enter the code ([A-Z]{4}-[A-Z]{4})/) }
  }
  const browser = openBrowser()
  await scene.enter(browser)
  const answer = async (code: string, answered: string) => {
    const question = await browser.submit(`${url}/ui/device`, { code })
    assert.match(question.text, /<code>pinfold<\/code>/)
    await browser.submit(`${url}/ui/device/confirm`, { code, answer: answered })
  }
  const first = await begin({ BROWSER: '', DISPLAY: '', WAYLAND_DISPLAY: '' })
  await answer(first.code, 'approve')
  const done = await first.signingIn.done
  assert.equal(done.code, 0, done.stderr)
  assert.match(done.stdout, new RegExp(`^identity +${uid}\n`))
  assert.match(done.stderr, /Sign in at \S+\/ui\/signin\?org=acme\.example&return=%2Fui%2Fdevice/)
  assert.equal((await me.command('sessions', 'list')).code, 0)

  const second = await begin({ BROWSER: '/bin/false' }, '--device')
  await answer(second.code, 'refuse')
  const refused = await second.signingIn.done
  assert.deepEqual([refused.code, refused.stdout], [77, ''])
  assert.match(refused.stderr, /pinfold: the sign-in failed: the user denied the sign-in\n$/)
  assert.equal((await me.command('whoami')).code, 0)
})

test('--org-name and --headless work like --org and --device', async () => {
  using me = user()
  const { url } = scene.pinfold
  for (const [org, ...args] of [
    ['acme.example', '--org', 'acme.example', '--device'],
    ['%40acme.example', '--org', 'ada@acme.example', '--device'],
    ['acme.example', '--org-name', 'acme.example', '--headless'],
  ]) {
    const signingIn = me.start('login', ...args)
    assert.equal(await signingIn.says(/Go to (\S+) and enter/), `${url}/ui/device`)
    const code = await signingIn.says(/enter the code ([A-Z]{4}-[A-Z]{4})/)
    const browser = openBrowser()
    await scene.enter(browser)
    await browser.submit(`${url}/ui/device/confirm`, { code, answer: 'refuse' })
    const { code: ended, stderr } = await signingIn.done
    assert.deepEqual([ended, stderr.includes(`?org=${org}&`)], [77, true], args.join(' '))
  }
  for (const invite of ['--invite', '--invite-code']) {
    const { code, stderr } = await me.command('login', '--headless', invite, 'x')
    assert.deepEqual([code, /accept the invitation in a browser at \S+\/ui\/invite/.test(stderr)], [64, true], stderr)
  }
})

test('redeems an invitation, and shows the reason to a refused person', async () => {
  using me = user()
  scene.somebody()
  const stranger = me.start('login', '--identity-provider', 'company')
  await openBrowser().go(await stranger.toOpen())
  const { code, stderr } = await stranger.done
  assert.equal(code, 77, stderr)
  assert.match(stderr, /you have no account on this server/)

  const { code: invite } = await scene.pinfold.seed.invite(scene.org.uid, roleUids.editor)
  using invited = user()
  const joining = invited.start('login', '--identity-provider', 'company', '--invite', invite)
  const browser = openBrowser()
  const asked = await browser.go(await joining.toOpen())
  const href = /href="(\/oauth\?[^"]+)">Join/.exec(asked.text)![1]!.replaceAll('&amp;', '&')
  await browser.go(new URL(href, asked.url).href)
  const joined = await joining.done
  assert.equal(joined.code, 0, joined.stderr)
  assert.match(joined.stdout, /permission +editor in acme\.example/)
  assert.equal((await invited.command('login', '--device', '--invite', invite)).code, 64)
  const both = ['--org', 'a', '--identity-provider', 'b']
  assert.equal((await invited.command('login', ...both)).code, 64)
  assert.equal((await invited.command('login', '--device', '--identity', 'a'.repeat(40))).code, 64)
})

test('a session with roles of external groups ends after an hour, and is not refreshed', async () => {
  using me = user()
  const { idp, org, pinfold } = scene
  ok(
    await pinfold.operator.post(`/iam/v2/externalGroupRoleMappings/${idp.uid}`, {
      externalGroupId: 'ops',
      roleUid: roleUids.push,
      scope: org.uid,
    }),
  )
  scene.somebody({ groups: ['ops'] })
  await login(me)
  assert.equal(sessionOf(me).refreshToken, '')
  const { host } = new URL(pinfold.url)
  const registry = await me.command('tokens', 'print', '--audience', host)
  assert.equal(claimsOf(registry.stdout.trim()).aud, host)
  assert.equal((await me.command('tokens', 'print', '--audience', `libraries.${host}`)).code, 77)
})
