import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makePlace, project, run, startProcess } from '../support/process.ts'

const readme = readFileSync(join(project, 'README.md'), 'utf8')
const tour = /^## A tour in ten minutes\n([\s\S]*?)^## /m.exec(readme)![1]!
const blocks = [...tour.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1]!)

test('the tour of the README works as it is written', async (t) => {
  await using place = await makePlace()
  await using server = await startProcess(place)
  const hasGrpcurl = (await run(['-c', 'command -v grpcurl'], { command: 'sh' })).code === 0
  if (!hasGrpcurl) t.diagnostic('without grpcurl on the PATH its block is left out')

  // Only what differs from `npm start` is replaced: the port, and where the data is.
  const script = (hasGrpcurl ? blocks : blocks.filter((block) => !block.includes('grpcurl')))
    .map((block) => `${block}echo --- >&2; echo ---\n`)
    .join('')
    .replaceAll('127.0.0.1:8080', new URL(server.url).host)
    .replaceAll('--data data', `--data ${place.data}`)
  const env = { ...place.env, ...(place.database ? { PINFOLD_DATABASE: place.database } : {}) }
  const { code, stdout, stderr } = await run(['-euc', script], { command: 'sh', env })
  assert.equal(code, 0, stderr)
  assert.equal(stderr.replaceAll('---\n', ''), '')

  const outputs = stdout.split('---\n').map((output) => output.trim().split('\n'))
  const [token, , identity, role, viewer, pages, errors, grpc] = outputs.map((lines) => lines.filter(Boolean))
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
