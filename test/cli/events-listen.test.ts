import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { operatorUid } from '#issuer/access-token.ts'
import { makeHome } from '../support/fake-sts.ts'
import { roleUids, startPinfold } from '../support/pinfold.ts'
import { cleanEnv, program, project } from '../support/process.ts'
import { startReceiver, verifyDelivery } from '../support/receiver.ts'

type Change = (block: string) => string

/** Proxy at the URL of the server. It forwards requests, and can interrupt streams or change their content. */
async function startFront() {
  const streams = new Set<http.ServerResponse>()
  let target = 0
  let change: Change = (block) => block
  const wakers = new Set<() => void>()
  const server = http.createServer((req, res) => {
    const { url: path = '/', method, headers } = req
    const asked = http.request({ port: target, host: '127.0.0.1', path, method, headers }, (answer) => {
      res.writeHead(answer.statusCode!, answer.headers)
      if (answer.headers['content-type'] !== 'text/event-stream') return void answer.pipe(res)
      streams.add(res)
      for (const wake of wakers) wake()
      res.once('close', () => asked.destroy())
      let text = ''
      answer.setEncoding('utf8').on('data', (more: string) => {
        const blocks = (text + more).split('\n\n')
        text = blocks.pop()!
        for (const block of blocks) res.write(`${change(block)}\n\n`)
      })
      answer.on('error', () => res.destroy())
      answer.on('end', () => res.end())
    })
    asked.on('error', () => res.destroy())
    req.pipe(asked)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pass(port: number, by: Change = (block) => block) {
      target = port
      change = by
    },
    cut() {
      for (const res of streams) res.destroy()
      streams.clear()
    },
    /** Resolves when the given number of clients read the event stream. */
    followed: (clients: number) =>
      new Promise<void>((resolve) => {
        const look = () => {
          if (streams.size < clients) return
          wakers.delete(look)
          resolve()
        }
        wakers.add(look)
        look()
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The real command, until the test stops it. */
function listen(api: string, token: string, args: readonly string[]) {
  const home = makeHome()
  const env = cleanEnv({ ...home.env, PINFOLD_TOKEN: token, PINFOLD_API: api })
  const child = spawn(program, ['events', 'listen', ...args], { cwd: project, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  const wakers = new Set<() => void>()
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
      for (const wake of wakers) wake()
    })
  }
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const lines = () => output.stdout.split('\n').slice(0, -1)
  const until = (isTrue: () => boolean) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!isTrue()) return
        wakers.delete(look)
        resolve()
      }
      wakers.add(look)
      look()
      void ended.then((code) => reject(new Error(`it ended with ${code}: ${output.stderr}`)))
    })
  return {
    output,
    lines,
    json: () => lines().map((line) => JSON.parse(line)),
    until,
    ended,
    folder: home.home,
    stop: () => child.kill('SIGINT'),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
      home[Symbol.dispose]()
    },
  }
}

/** Starts a server behind such a proxy, with an organization. */
async function start(options: Parameters<typeof startPinfold>[0] = {}) {
  const front = await startFront()
  const pinfold = await startPinfold({ deliver: true, url: front.url, streamIdleMs: 100, ...options })
  front.pass(pinfold.listenPort)
  return {
    front,
    pinfold,
    org: (await pinfold.seed.group()).uid as string,
    token: await pinfold.tokenFor(operatorUid),
    async [Symbol.asyncDispose]() {
      await pinfold[Symbol.asyncDispose]()
      await front[Symbol.asyncDispose]()
    },
  }
}

const repos = 'dev.pinfold.api.platform.registry.repo.*'

test('prints events as they arrive, as text and as JSON', async () => {
  await using it = await start()
  const { front, pinfold, org, token } = it
  const folder = (await pinfold.seed.group(org)).uid
  const viewer = await pinfold.seed.member(folder, roleUids.viewer)
  await using people = listen(front.url, token, ['--in', org, '--type', repos])
  await using programs = listen(front.url, await pinfold.tokenFor(viewer.uid), ['--type', repos, '-o', 'json'])
  await front.followed(2)
  await pinfold.seed.role(org, ['repo.list'])
  await pinfold.seed.repo(org)
  const made = await pinfold.seed.repo(folder, { description: 'last' })
  await people.until(() => people.lines().length === 2)
  await programs.until(() => programs.lines().length === 1)

  const line = people.lines().at(-1)
  assert.equal(
    line,
    `${made.createTime}  dev.pinfold.api.platform.registry.repo.created.v1  ${made.uid}  by ${operatorUid}`,
  )
  const event = programs.json().at(-1)
  assert.deepEqual(
    [event.specversion, event.type, event.group, event.data.body.description, event.data.actor.subject],
    ['1.0', 'dev.pinfold.api.platform.registry.repo.created.v1', folder, 'last', operatorUid],
  )
  for (const one of [people, programs]) {
    assert.ok(!one.output.stdout.includes('.roles.'))
    assert.ok(!`${one.output.stdout}${one.output.stderr}`.includes('eyJ'), 'a token was printed')
    one.stop()
    assert.equal(await one.ended, 0)
  }
})

test('prints events signed with RS256 too', async () => {
  await using it = await start({ signingAlgorithms: ['RS256'] })
  const made = await it.pinfold.seed.repo(it.org)
  await using listener = listen(it.front.url, it.token, ['--in', it.org, '--type', repos, '--after', '0', '-o', 'json'])
  await listener.until(() => listener.lines().length === 1)
  assert.equal(listener.json()[0].subject, made.uid)
})

test('continues after an interruption from the last event', async () => {
  await using it = await start()
  const { front, pinfold, org, token } = it
  const first = await pinfold.seed.repo(org)
  await using listener = listen(front.url, token, ['--in', org, '--type', repos, '--after', '0', '-o', 'json'])
  const subjects = () => listener.json().map(({ subject }) => subject)
  await listener.until(() => subjects().includes(first.uid))
  const made = [first.uid]
  for (let round = 0; round < 2; round++) {
    front.cut()
    for (let i = 0; i < 3; i++) made.push((await pinfold.seed.repo(org)).uid)
    await listener.until(() => subjects().length >= made.length)
  }
  assert.deepEqual(subjects(), made)
  assert.match(listener.output.stderr, /connecting again/)
})

test('prints no event without a valid server signature, and exits', async () => {
  await using it = await start()
  const { front, pinfold, org, token } = it
  const elsewhere = (await pinfold.seed.group()).uid
  const genuine = (await pinfold.seed.repo(elsewhere)).uid
  let other = ''
  front.pass(pinfold.listenPort, (block) => {
    other = /"token":"([^"]+)"/.exec(block)?.[1] ?? other
    return block
  })
  await using witness = listen(front.url, token, ['--in', elsewhere, '--after', '0', '-o', 'json'])
  await witness.until(() => witness.json().at(-1)?.subject === genuine)
  witness.stop()
  await witness.ended

  await pinfold.seed.repo(org, { description: 'as it was' })
  const changes: [name: string, change: Change][] = [
    ['another body', (block) => block.replace('as it was', 'as it is not')],
    ['another token', (block) => block.replace(/"token":"[^"]+"/, `"token":"${other}"`)],
    ['no token', (block) => block.replace(/"token":"[^"]+"/, '"token":""')],
    ['another group', (block) => block.replace(`"group":"${org}"`, `"group":"${elsewhere}"`)],
    ['another id', (block) => block.replace(/"id":"([0-9a-f])[^"]*","type"/, '"id":"x","type"')],
  ]
  for (const [name, change] of changes) {
    front.pass(pinfold.listenPort, change)
    await using listener = listen(front.url, token, ['--in', org, '--type', repos, '--after', '0'])
    assert.equal(await listener.ended, 1, name)
    assert.deepEqual(listener.lines(), [], name)
    assert.match(listener.output.stderr, /is not genuine, according to its signature by http:\S+: /, name)
  }
})

test('forwards events in the form that a subscription gets', async () => {
  await using it = await start()
  const { front, pinfold, org, token } = it
  await using receiver = await startReceiver((_, times) => ({ status: times === 1 ? 204 : 500 }))
  const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`
  const repo = await pinfold.seed.repo(org, { description: 'späte Grüße' })
  const args = ['--in', org, '--type', repos, '--after', '0', '--forward', receiver.url]

  await using told = listen(front.url, token, args)
  await receiver.until((got) => got.length === 1)
  const [, printed = ''] = /signed with (whsec_\S+)/.exec(told.output.stderr) ?? []
  await using kept = listen(front.url, token, [...args, '--secret-file', secretFile(told.folder, secret)])
  await receiver.until((got) => got.length === 2)
  await kept.until(() => / -> 500\n/.test(kept.output.stderr))
  for (const [i, key] of [printed, secret].entries()) {
    const one = receiver.got[i]!
    await verifyDelivery(one, pinfold.url, org)
    new Webhook(key).verify(one.text, one.headers as Record<string, string>)
    assert.deepEqual(
      [one.subject, one.headers['ce-group'], one.headers['content-type'], one.json.body.description],
      [repo.uid, org, 'application/json', 'späte Grüße'],
    )
  }
  assert.match(told.output.stderr, /repo\.created\.v1 [0-9a-f-]{36} -> 204\n/)
})

function secretFile(folder: string, secret: string): string {
  const file = join(folder, 'secret')
  writeFileSync(file, `${secret}\n`, { mode: 0o600 })
  return file
}

test('reports errors at once that a retry would not fix', async () => {
  await using it = await start()
  const { front, pinfold, org, token } = it
  const stranger = await pinfold.tokenFor((await pinfold.seed.person()).uid)
  const earlier = await pinfold.tokenFor(operatorUid, { now: new Date(Date.now() - 2 * 60 * 60 * 1000) })
  const cases: [args: string[], token: string, code: number, says: RegExp][] = [
    [['--in', org], stranger, 77, /does not have the required capabilities/],
    [[], earlier, 77, /expired/],
    [['--after', '00000000-0000-4000-8000-000000000000'], token, 1, /no longer stored/],
    [['--type', 'Not A Type'], token, 1, /types: must be event types/],
    [['--in', 'x'], token, 1, /no organi[sz]ation .*x/],
    [['--forward', 'nowhere'], token, 64, /--forward must be an http or https URL/],
    [
      ['--forward', 'http://127.0.0.1:1', '--secret-file', import.meta.filename],
      token,
      78,
      /does not contain a webhook secret/,
    ],
  ]
  for (const [args, bearer, code, says] of cases) {
    await using listener = listen(front.url, bearer, args)
    assert.equal(await listener.ended, code, `${args.join(' ')}: ${listener.output.stderr}`)
    assert.match(listener.output.stderr, says)
    assert.equal(listener.output.stdout, '')
  }
})
