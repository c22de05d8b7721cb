// The link that signs in one browser as the operator.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { relative } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBrowser } from '../support/browser.ts'
import { cleanEnv, createStorage, program, project, run, startProcess } from '../support/process.ts'
import { eventually } from '../support/receiver.ts'

test('pinfold server console prints a link that works in one browser, and serve prints no link into a file', async () => {
  await using storage = await createStorage()
  const command = () => run(['server', 'console', ...storage.args], { env: storage.env })
  await using server = await startProcess(storage)
  const printed = `run: ${relative(project, program)} server console`
  await eventually(
    async () => server.output.stdout,
    (shown) => shown.includes(`\nTo open the console as the operator, ${printed}`),
  )
  const { code, stdout, stderr } = await command()
  assert.deepEqual([code, stderr], [0, ''])
  const link = new URL(stdout.trim())
  assert.deepEqual([link.origin, link.pathname, link.hash.length], [server.url, '/ui/enter', 44])

  const page = await fetch(`${server.url}/ui/enter`)
  const [, source] = /script-src '(sha256-[^']+)'/.exec(page.headers.get('content-security-policy')!)!
  const [, script] = /<script>([^<]+)<\/script>/.exec(await page.text())!
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(script))
  assert.equal(source, `sha256-${Buffer.from(digest).toString('base64')}`)

  const entered = await openBrowser().submit(`${server.url}/ui/enter`, { code: link.hash.slice(1) })
  assert.match(entered.text, /data-name="Operator"/)
  assert.equal((await openBrowser().submit(`${server.url}/ui/enter`, { code: link.hash.slice(1) })).status, 403)
  assert.doesNotMatch(server.output.stdout + server.output.stderr, /#|enter/)
})

const missing = spawnSync('script', ['--version']).status === 0 ? false : 'there is no `script`'

test('npm start with the demo prints a link to a terminal, and the link opens the demo data', {
  skip: missing,
}, async () => {
  await using storage = await createStorage()
  const line = ['npm', 'start', '--', '--demo', ...storage.args, '--listen', '127.0.0.1:0']
  const quoted = line.map((one) => `'${one}'`).join(' ')
  const { container: _, ...env } = cleanEnv(storage.env)
  const child = spawn('script', ['-qec', quoted, '/dev/null'], { cwd: project, env, stdio: ['pipe', 'pipe', 'pipe'] })
  const closed = once(child, 'close')
  try {
    let shown = ''
    child.stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString()
    })
    const link = () => /(http:\/\/127\.0\.0\.1:\d+)\/ui\/enter#([A-Za-z0-9_-]{43})/.exec(shown)
    while (!link()) {
      assert.equal(child.exitCode, null, shown)
      await sleep(20)
    }
    const [, url, code] = link()!
    const browser = openBrowser()
    const entered = await browser.submit(`${url}/ui/enter`, { code: code! })
    assert.match(entered.text, /data-name="Operator"/)
    const read = async (path: string) => {
      const answer = await browser.ask(`${url}/ui/api${path}`, { headers: { 'sec-fetch-site': 'same-origin' } })
      return JSON.parse(answer.text)
    }
    const { groups } = await read('/iam/v2/groups?name=edge')
    const { repos } = await read(`/registry/v2/repos?name=nginx&uidp.children_of=${groups[0].uid}`)
    const { records } = await read(`/registry/v2/repos/${repos[0].uid}/tagHistory?tag=candidate`)
    assert.ok(records.length > 5)
    assert.ok(Date.parse(records.at(-1).time) < Date.now() - 80 * 86_400_000)
  } finally {
    // Closes the terminal, which stops the program in it.
    child.kill('SIGTERM')
    await closed
    await storage.settled()
  }
})

test('pinfold server console fails if no server is running', async () => {
  await using storage = await createStorage()
  const { code, stdout, stderr } = await run(['server', 'console', ...storage.args], { env: storage.env })
  assert.deepEqual([code, stdout], [69, ''])
  assert.equal(
    stderr,
    'pinfold: no link was created: no server runs on the data folder or database; start it with pinfold serve\n',
  )
})
