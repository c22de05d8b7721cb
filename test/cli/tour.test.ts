import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeHome } from '../support/fake-sts.ts'
import { blocksOf, missing, paste } from '../support/pages.ts'
import { cleanEnv, createStorage, project, startInProcess } from '../support/process.ts'

/** Starts the program of a block on any free port, and resolves with its host once it prints that it is ready. */
async function startExample(block: string) {
  const [command, ...args] = block.trim().split(' ')
  const child = spawn(join(project, command!), [...args, '0'], {
    cwd: project,
    env: cleanEnv(),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = once(child, 'close')
  let text = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    text += chunk
    if (text.includes('\n')) break
  }
  return {
    host: new URL(/^ready (\S+)$/m.exec(text)![1]!).host,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

test('the quick start of the README works as written', async (t) => {
  if ((await missing('crane')).length > 0) return t.skip('crane must be on the PATH')
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  using home = makeHome()
  const blocks = blocksOf('README.md', 'Quick start')
  assert.ok(blocks.join('').split('\n').length <= 16, 'at most fifteen lines')
  const options = { quiet: false, env: { ...home.env, PINFOLD_DATA: storage.data } }
  const [shown] = await paste(blocks, storage, { '127.0.0.1:8080': new URL(server.url).host }, options)
  const pushed = shown!.findIndex((line) => /\/acme\/app@sha256:[0-9a-f]{64}$/.test(line))
  const second = shown![pushed]!.split('@')[1]
  const [moved, created] = shown!.slice(pushed + 2, pushed + 4).map((line) => line.split(/ {2,}/))
  assert.deepEqual([moved![1], moved![2], created![1]], ['moved', second, 'created'])
  assert.match(moved![3]!, /^oci .+ on /)
  assert.notEqual(created![2], second)
  assert.deepEqual(shown!.slice(pushed + 4), ['README.md'])
})

test('the tour of the API works as written', async (t) => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  const hasGrpcurl = (await missing('grpcurl')).length === 0
  if (!hasGrpcurl) t.diagnostic('without grpcurl on the PATH its block is left out')

  const blocks = blocksOf('docs/tours/api.md').filter((block) => hasGrpcurl || !block.includes('grpcurl'))
  const outputs = await paste(blocks, storage, { '127.0.0.1:8080': new URL(server.url).host })
  const [token, , identity, role, viewer, pages, errors, grpc] = outputs
  assert.deepEqual(token, ['{"response":"pong"}'])
  assert.equal(JSON.parse(identity![0]!).name, 'ledger releases')
  assert.equal(JSON.parse(role![0]!).role.name, 'viewer')
  const [refused, bound, allowed] = viewer!.map((line) => JSON.parse(line))
  assert.deepEqual([refused.code, bound.role.name, allowed.name], [7, 'repo maker', 'ledger'])
  const [first, second] = pages!.map((line) => JSON.parse(line))
  assert.equal(first.totalCount, '5')
  const names = [...first.repos, ...second.repos].map((repo: { name: string }) => repo.name)
  assert.deepEqual(names, ['go', 'ledger', 'node', 'python', 'ruby'])
  const [patched, wrong, blocked] = errors!.map((line) => JSON.parse(line))
  assert.deepEqual([patched.description, wrong.code, blocked.code], ['Runs the ledger', 3, 9])
  if (hasGrpcurl) {
    const text = grpc!.join('\n')
    assert.match(text, /^pinfold\.platform\.registry\.v2\.ReposService$/m)
    assert.match(text, /rpc ListRepos/)
    assert.match(text, /"name": "jdk"/)
    assert.match(text, /"totalCount": "6"/)
  }
})

test('the tour of keyless CI works as written', async () => {
  const [start, platform, ...blocks] = blocksOf('docs/tours/keyless-ci.md')
  const settings = start!.trim().split(' ')
  assert.deepEqual(settings.splice(-2), ['npm', 'start'])
  await using storage = await createStorage()
  await using server = await startInProcess(storage, {
    env: Object.fromEntries(settings.map((text) => text.split('='))),
  })
  await using example = await startExample(platform!)

  const hosts = { '127.0.0.1:8080': new URL(server.url).host, '127.0.0.1:9090': example.host }
  const [org, identity, check, exchanged, job, gone] = await paste(blocks, storage, hosts)
  assert.equal(JSON.parse(org![0]!).name, 'nightly')
  assert.deepEqual([identity, exchanged], [[], []])
  assert.match(check!.at(-1)!, /^the token matches/)
  const [list, write] = job!.map((line) => JSON.parse(line))
  assert.deepEqual([list.repos.map((repo: { name: string }) => repo.name), write.code], [['nightly'], 7])
  const [refused, me] = gone!.map((line) => JSON.parse(line))
  assert.equal(refused.code, 7)
  assert.deepEqual(me.capabilities, [])
  assert.ok(Date.parse(me.expiry) > Date.now())
})

test('the tour of the registry works as written', async (t) => {
  const clients = await missing('crane', 'skopeo', 'oras')
  if (clients.length > 0) return t.skip(`${clients.join(', ')} must be on the PATH`)
  const [start, platform, ...blocks] = blocksOf('docs/tours/registry.md')
  const settings = start!.trim().split(' ').slice(0, -2)
  await using storage = await createStorage()
  await using server = await startInProcess(storage, {
    env: Object.fromEntries(settings.map((text) => text.split('='))),
  })
  await using example = await startExample(platform!)
  using home = makeHome()

  const hosts = { '127.0.0.1:8080': new URL(server.url).host, '127.0.0.1:9090': example.host }
  const outputs = await paste(blocks, storage, hosts, { quiet: false, env: home.env })
  const [bound, signedIn, pushed, looked, pulled, attached, open, imported, moments] = outputs
  assert.equal(JSON.parse(bound![0]!).role.name, 'registry.push')
  assert.match(signedIn!.join('\n'), /^permission +registry\.push in shipyard$/m)
  const digests = pushed!.flatMap((line) => /@(sha256:[0-9a-f]{64})$/.exec(line)?.[1] ?? [])
  assert.equal(new Set(digests).size, 5)
  assert.deepEqual(digestsOf(JSON.parse(looked![0]!).history), digests)
  assert.deepEqual(digestsOf(JSON.parse(looked![1]!).manifests), digests.slice(-2).reverse())
  for (const digest of digests) assert.match(looked!.slice(2).join('\n'), new RegExp(digest))
  assert.deepEqual(pulled, ['release 1', 'refused'])
  assert.match(attached!.join('\n'), /application\/vnd\.cyclonedx\+json/)
  assert.equal(open!.at(-1), 'release 5')
  assert.match(imported!.at(-1)!, /^records +3 were added/)
  assertMoments(moments!)
})

function digestsOf(records: readonly { digest: string }[]): string[] {
  return records.map(({ digest }) => digest)
}

/** Checks the output of the registry and the command line about the imported history: all of it, at one moment, of one digest. */
function assertMoments([ranged, ...shown]: string[]) {
  const [one, two] = ['1', '2'].map((digit) => `sha256:${digit.repeat(64)}`)
  assert.deepEqual(digestsOf(JSON.parse(ranged!).history), [two, one])
  const columns = shown.map((line) => line.split(/ {2,}/))
  assert.deepEqual(
    columns.slice(1, 4).map(([time, event, digest]) => [time, event, digest]),
    [
      ['2026-01-14T16:30:00.000Z', 'moved', one],
      ['2026-01-12T08:00:00.000Z', 'moved', two],
      ['2026-01-05T08:00:00.000Z', 'created', one],
    ],
  )
  assert.equal(columns[5]![2], two)
  assert.deepEqual(
    columns.slice(7).map(([tag, , from, until]) => [tag, from, until]),
    [
      ['latest', '2026-01-14T16:30:00.000Z', 'now'],
      ['latest', '2026-01-05T08:00:00.000Z', '2026-01-12T08:00:00.000Z'],
    ],
  )
}

test('the tour of advisories works as written', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  const blocks = blocksOf('docs/tours/advisories.md')
  const [imports, search, review, open] = await paste(blocks, storage, { '127.0.0.1:8080': new URL(server.url).host })
  assert.deepEqual(imports, [
    '174 advisories: 174 new, 0 changed, 0 unchanged',
    '70 vulnerabilities: 70 new, 0 changed, 0 unchanged',
    '174 advisories: 0 new, 0 changed, 174 unchanged',
  ])
  const [fixed, found] = search!.map((line) => JSON.parse(line))
  const [newest] = fixed.advisories
  assert.deepEqual(
    [fixed.totalCount, newest.advisoryId, newest.severities[0].type],
    ['7', 'CGA-wq6g-r44g-x375', 'TYPE_CVSS_V3'],
  )
  assert.match(found.advisories[0].aliases[0], /^CVE-2024-34/)
  const [approved, final] = review!.map((line) => JSON.parse(line))
  assert.deepEqual([approved.reviewState, approved.reviewer], ['REVIEW_STATE_APPROVED', 'lead@example.com'])
  assert.equal(final.code, 9)
  const [documents, metadata] = open!.map((line) => JSON.parse(line))
  assert.equal(documents.documents[0].id, 'prometheus')
  const told = documents.documents[0].advisories.find(({ id }: { id: string }) => id === 'CGA-72wq-7j24-6mpm')
  assert.equal(told.events.at(-1).falsePositiveDetermination.note, 'The decoder is never called.')
  assert.match(metadata.vulnerabilityMetadata[0].severities[0].score, /^CVSS:3/)
})

test('the tour of libraries works as written', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  const blocks = blocksOf('docs/tours/libraries.md')
  const [imports, found] = await paste(blocks, storage, { '127.0.0.1:8080': new URL(server.url).host })
  assert.equal(imports!.at(-1), '3 libraries: 0 new, 0 changed, 3 unchanged, 0 new versions, 0 changed versions')
  const [counts, named, cuda, versions] = found!.map((line) => JSON.parse(line))
  assert.deepEqual(
    counts.counts.map(({ totalCount }: { totalCount: string }) => totalCount),
    ['3', '4'],
  )
  const names = ({ artifacts }: { artifacts: { name: string }[] }) => artifacts.map(({ name }) => name)
  assert.deepEqual(
    [names(named), names(cuda)],
    [['jinja2', 'junit:junit', 'org.slf4j:slf4j-api'], ['nvidia-cublas-cu12']],
  )
  const newest = versions.artifactVersions.map(({ version }: { version: string }) => version)
  assert.deepEqual(newest, ['33.5.0-android', '32.1.2-jre', '31.1-jre'])
})
