import assert from 'node:assert/strict'
import { test } from 'node:test'
import { domainOf, folderOf, importsOf, isUpward, layers, sources } from './layers.ts'

const upward = sources
  .flatMap(importsOf)
  .filter(isUpward)
  .map(({ from, to }) => `${from.slice('src/domains/'.length)} -> ${to.slice('src/domains/'.length)}`)

test('domains and their folders import only lower ones', () => {
  assert.deepEqual([...new Set(upward)], [])
})

test('every domain and every folder of a domain is listed as a layer', () => {
  const inDomains = sources.filter((file) => domainOf(file) !== '')
  const found = new Set(inDomains.map((file) => [domainOf(file), folderOf(file)].filter(Boolean).join('/')))
  const named = Object.entries(layers).flatMap(([domain, folders]) => [
    domain,
    ...folders.map((one) => `${domain}/${one}`),
  ])
  assert.deepEqual(
    [...found].filter((folder) => !named.includes(folder)),
    [],
  )
  const empty = named.filter((folder) => !inDomains.some((file) => file.startsWith(`src/domains/${folder}/`)))
  assert.deepEqual(empty, [])
})

test('finds an import of a higher folder or a higher domain', () => {
  const between = (from: string, to: string) => isUpward({ from: `src/domains/${from}`, to: `src/domains/${to}` })
  assert.ok(between('iam/groups/groups.service.ts', 'registry/repos/repos.service.ts'))
  assert.ok(between('iam/groups/groups.service.ts', 'iam/roles/roles.service.ts'))
  assert.ok(!between('registry/repos/repos.service.ts', 'iam/groups/groups.service.ts'))
  assert.ok(!between('iam/roles/roles.service.ts', 'iam/groups/groups.service.ts'))
  assert.ok(!between('iam/domain.ts', 'iam/groups/groups.v2.ts'))
})
