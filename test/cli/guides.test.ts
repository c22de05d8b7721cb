import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { summaries } from '#cli/summaries.ts'
import { makeHome } from '../support/fake-sts.ts'
import { blocksOf, missing, paste } from '../support/pages.ts'
import { createStorage, run, startInProcess } from '../support/process.ts'

type Output = readonly string[]
type Options = { env?: Record<string, string>; hosts?: Record<string, string> }

/** Runs a guide on a new server, and returns the output of each block, or undefined if crane is not installed. */
async function runGuide(
  t: TestContext,
  page: string,
  { env = {}, hosts = {} }: Options = {},
): Promise<Output[] | undefined> {
  if ((await missing('crane')).length > 0) return void t.skip('crane must be on the PATH')
  await using storage = await createStorage()
  await using server = await startInProcess(storage, { env })
  using home = makeHome()
  const options = { quiet: false, env: { ...home.env, PINFOLD_DATA: storage.data } }
  return await paste(blocksOf(page), storage, { ...hosts, '127.0.0.1:8080': new URL(server.url).host }, options)
}

const rows = (lines: Output) => lines.map((line) => line.split(/ {2,}/))

test('the guide on pins and tag history works as written', async (t) => {
  const outputs = await runGuide(t, 'docs/guides/pin-and-look-back.md')
  if (!outputs) return
  const [pushed, pin, history, asOf, view, tags, back] = outputs
  const digests = pushed!.flatMap((line) => /@(sha256:[0-9a-f]{64})$/.exec(line)?.[1] ?? [])
  assert.equal(new Set(digests).size, 3)
  const [first, , last] = digests
  assert.match(pin!.at(-1)!, new RegExp(`^image: \\S+/acme/app@${last}$`))
  assert.deepEqual(
    rows(history!)
      .slice(1)
      .map(([, event, digest]) => [event, digest]),
    [
      ['moved', last],
      ['moved', digests[1]],
      ['created', first],
    ],
  )
  assert.equal(rows(asOf!)[1]![2], last)
  assert.deepEqual(view, [last])
  assert.deepEqual(
    rows(tags!)[1]!.filter((_, index) => index !== 2),
    ['stable', 'moved', 'now'],
  )
  const updates = rows(back!).filter(([, event]) => event === 'moved' || event === 'created')
  assert.deepEqual([updates.length, updates[0]![2]], [4, first])
})

test('the guide on retention works as written', async (t) => {
  const outputs = await runGuide(t, 'docs/guides/set-retention.md')
  if (!outputs) return
  const [, , planned, enforced, applied, refused] = outputs
  assert.deepEqual(
    rows(planned!)
      .slice(1)
      .map((row) => row.at(-1)),
    ['not deleted (dry-run)', 'not deleted (dry-run)'],
  )
  assert.match(enforced!.join('\n'), /^protected by +the date that a retention policy guarantees$/m)
  assert.match(applied!.at(-1)!, /^deleted 0 of 2 manifests, and kept 2$/)
  assert.equal(refused!.at(-1), 'refused, as expected')
})

test('the guide on vulnerable images works as written', async (t) => {
  const outputs = await runGuide(t, 'docs/guides/block-vulnerable-images.md')
  if (!outputs) return
  const [, imported, found, checked, denied, allowed] = outputs
  assert.match(imported!.at(-1)!, /^1 vulnerabilities: 1 new/)
  assert.match(found!.at(-1)!, /acme\/shop:1\.0 +affected +critical/)
  assert.match(checked!.at(-1)!, /^no-fixable +dry-run +denied/)
  assert.equal(denied!.at(-1), 'denied, as expected')
  assert.ok(allowed!.includes('lib/apk/db/installed'))
})

test('the guide on mirrors works as written, with a server of the test as the upstream', async (t) => {
  if ((await missing('crane')).length > 0) return t.skip('crane must be on the PATH')
  await using storage = await createStorage()
  await using upstream = await startInProcess(storage)
  using home = makeHome()
  const push = `bin/pinfold orgs create public --configure-docker
tar -cf - LICENSE | crane append -f - -t 127.0.0.1:8080/public/alpine:latest
`
  const options = { quiet: false, env: { ...home.env, PINFOLD_DATA: storage.data } }
  await paste([push], storage, { '127.0.0.1:8080': new URL(upstream.url).host }, options)
  const outputs = await runGuide(t, 'docs/guides/mirror-a-registry.md', {
    env: { PINFOLD_UPSTREAMS_PRIVATE: '127.0.0.0/8', PINFOLD_ALLOW_INSECURE_UPSTREAMS: 'on' },
    hosts: {
      'https://registry-1.docker.io': upstream.url,
      '--prefix library': '--prefix public',
      "'library/.*'": "'public/.*'",
      'hub/library/alpine': 'hub/public/alpine',
    },
  })
  const [, , pulled, history, below] = outputs!
  assert.match(pulled!.at(-1)!, /^sha256:[0-9a-f]{64}$/)
  assert.equal(rows(history!)[1]![2], pulled!.at(-1))
  assert.equal(below!.at(-1), pulled!.at(-1))
})

test('the CI guide creates an identity and prints the lines for the workflow', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  using home = makeHome()
  const options = { quiet: false, env: { ...home.env, PINFOLD_DATA: storage.data } }
  const hosts = { '127.0.0.1:8080': new URL(server.url).host }
  const [made] = await paste(blocksOf('docs/guides/push-from-ci.md').slice(0, 1), storage, hosts, options)
  assert.match(made!.join('\n'), /^ {2}PINFOLD_IDENTITY: \S+$/m)
  assert.match(made!.at(-1)!, /pinfold login && pinfold docker configure$/)
})

test('the restore test in the backup guide works as written', async (t) => {
  await using storage = await createStorage()
  if (storage.database) return t.skip('PostgreSQL is backed up with its own tools')
  await using _server = await startInProcess(storage)
  using home = makeHome()
  const blocks = blocksOf('docs/guides/back-up-and-restore.md').filter((block) => block.includes('--data data'))
  const [checked] = await paste(
    blocks,
    storage,
    { 'data/master.key': `${storage.data}/master.key` },
    { quiet: false, env: home.env },
  )
  assert.equal(checked!.filter((line) => /^\w+: \d+ examined, all right/.test(line)).length, 18)
})

/** Page with a table of former names of commands. */
const formerNames = 'docs/reference/cli.md'

/** The commands in the shell blocks and code spans of a page, with their words and options. */
function commandsOf(page: string): string[][] {
  const text = readFileSync(page, 'utf8').replaceAll(/\\\n\s*/g, '')
  const blocks = [...text.matchAll(/^ *```(.*)\n([\s\S]*?)^ *```$/gm)].flatMap(([, language, block]) =>
    language === '' || language === 'sh' ? [block!] : [],
  )
  const prose = text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
  const spans = [...prose.matchAll(/`(?:bin\/)?pinfold ([a-z][^`]*)`/g)].map((match) => match[1]!.trim().split(/\s+/))
  const written = blocks.flatMap((block) =>
    [...block.matchAll(/(?<!helm install )(?<=^|[\s($])(?:bin\/)?pinfold ([a-z][^\n|;&#)]*)/gm)].map((match) =>
      match[1]!.trim().split(/\s+/),
    ),
  )
  return page === formerNames ? written : [...written, ...spans]
}

// Contains intended mistakes.
const mistakes = 'docs/first-hour.md'

test('each command in the documentation exists, with its options', async () => {
  const helps = new Map<string, string>()
  const helpOf = async (path: string) => {
    if (!helps.has(path)) helps.set(path, (await run([...path.split(' '), '--help'])).stdout)
    return helps.get(path)!
  }
  const wrong: string[] = []
  const pages = globSync(['*.md', 'docs/*.md', 'docs/!(api|decisions)/**/*.md']).filter((page) => page !== mistakes)
  for (const page of pages) {
    for (const words of commandsOf(page)) {
      const path = words.map((_, index) => words.slice(0, index + 1).join(' ')).findLast((words) => words in summaries)
      const rest = words.slice(path?.split(' ').length ?? 0)
      const isGroup = Object.keys(summaries).some((other) => other.startsWith(`${path} `))
      const unknown = path === undefined || (isGroup && /^[a-z]/.test(rest[0] ?? ''))
      const options = rest.filter((word) => word.startsWith('--')).map((word) => word.split('=')[0]!)
      const missing = unknown
        ? []
        : (
            await Promise.all(options.map(async (option) => ((await helpOf(path)).includes(option) ? [] : [option])))
          ).flat()
      if (unknown || missing.length > 0) wrong.push(`${page}: pinfold ${words.join(' ')}`)
    }
  }
  assert.deepEqual(wrong, [])
})
