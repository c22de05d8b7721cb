// From a vulnerability or a package to the images with it: each query uses an index.

import { after, before, test } from 'node:test'
import type { Reader } from '#db/sql.ts'
import * as lists from '#domains/registry/images/image-lists.store.ts'
import { namesWith } from '#domains/registry/tags/tags.store.ts'
import { recordsNamed } from '#domains/scanning/image-findings/image-findings.store.ts'
import * as images from '#domains/scanning/images/images.store.ts'
import { storedEcosystems } from '#domains/scanning/lists/lists.store.ts'
import { top } from '#lib/uid.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const group = 'a'.repeat(40)
const digest = `sha256:${'a'.repeat(64)}`
const key = { hash: 'h', distribution: { id: 'alpine', version: '3.19' } }

const byRepo = { after: `${group}/${'b'.repeat(16)}`, desc: false }

const asked: Record<string, (reader: Reader) => Promise<unknown>> = {
  'images of a list': (reader) => lists.imagesOfList(reader, key, { repo: 1, digest }, 500),
  'images of a repository': (reader) => lists.imagesOfRepo(reader, { repo: 1, digest }, false, 500),
  'images of a repository, descending': (reader) => lists.imagesOfRepo(reader, { repo: 1, digest }, true, 500),
  'first images of a repository': (reader) => lists.imagesOfRepo(reader, { repo: 1, digest: '' }, true, 500),
  'next repository of a scope': (reader) => lists.nextRepoWithImages(reader, group, byRepo),
  'next repository of a scope, descending': (reader) =>
    lists.nextRepoWithImages(reader, group, { ...byRepo, desc: true }),
  'first repository of the server': (reader) => lists.nextRepoWithImages(reader, top, { ...byRepo, after: undefined }),
  'lists of a scope': (reader) => lists.listsBelow(reader, group, 2001),
  'tags of a digest': (reader) => namesWith(reader, { id: 1, uid: group }, digest, 101),
  'ecosystems of all lists': storedEcosystems,
  'lists by number': (reader) => images.listsOf(reader, [1, 2]),
  'lists by hash': (reader) => images.listsHashed(reader, ['a', 'b']),
  'a page of all lists': (reader) => images.listsFrom(reader, 5, 50),
  'lists that were not compared': (reader) => images.incompleteLists(reader, 5, 100),
  'hashes that images have': (reader) => lists.hashesInUse(reader, ['a', 'b']),
  'lists with one of some packages': (reader) => images.listsWithAny(reader, [1, 2, 3], 5, 50),
  'a package in a list': (reader) => images.namedInList(reader, 1, 'openssl', { after: 5, most: 500 }),
  'a page of the packages of a list': (reader) => images.componentsIn(reader, 1, { after: 5, most: 50 }),
  'records of a name': (reader) =>
    recordsNamed(reader, 'CVE-2026-1', { own: 'own', organizations: [group], most: 100 }),
}

for (const [what, ask] of Object.entries(asked)) {
  test(`${what}: uses an index`, async () => {
    for (const query of await queriesOf(ask)) await checkPlanOf(pinfold, query, what)
  })
}
