// The first start links a database and its blob folder.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { createApp } from '../../src/create-app.ts'
import { startPinfold } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'

type Server = Pick<TestRegistry, 'app'>

function newFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-blobs-'))
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}

const idOf = (folder: string) => join(folder, 'pinfold-id')
const ownFolder = ({ app }: Server) => join(app.config.data, 'blobs')

/** Opens the same database with another folder, like a second server. Rejects if the server refuses the folder. */
async function openWith({ app }: Server, blobs: string): Promise<void> {
  const second = await createApp({ ...app.config, blobs })
  await second.close()
}

const forget = ({ app }: Server) =>
  app.db.tx((tx) => tx.run(sql`DELETE FROM facts WHERE name IN (${'blob_folder_id'}, ${'database_id'})`))

test('refuses a second server with another blob folder on the database, with or without blobs', async () => {
  await using registry = await startRegistry({ blobs: '' })
  using other = newFolder()
  await assert.rejects(openWith(registry, other.folder), /is not the folder of this database's blobs; set --blobs/)
  await registry.pusher.pushImage('acme/app', 'v1')
  await assert.rejects(openWith(registry, other.folder), /has none of the blobs of the database; set --blobs/)
  assert.equal(existsSync(idOf(other.folder)), false)
  await openWith(registry, ownFolder(registry))
  await openWith(registry, '')
})

test('refuses a folder that another database uses, without changing it', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const id = readFileSync(idOf(ownFolder(registry)), 'utf8')
  await assert.rejects(startPinfold({ blobs: ownFolder(registry) }), /belong to another database; set --blobs/)
  await using other = await startRegistry({ blobs: '' })
  await other.pusher.pushImage('acme/app', 'v1')
  await assert.rejects(openWith(other, ownFolder(registry)), /belong to another database/)
  assert.equal(readFileSync(idOf(ownFolder(registry)), 'utf8'), id)
})

test('refuses a folder with another id, also if it lists the database', async () => {
  await using registry = await startRegistry({ blobs: '' })
  using other = newFolder()
  const [, database] = readFileSync(idOf(ownFolder(registry)), 'utf8').split(' ')
  writeFileSync(idOf(other.folder), `some-other-id ${database}`)
  await assert.rejects(openWith(registry, other.folder), /the blobs of this database are in another folder/)
})

test('older data gets its ids once some of its blobs are found', async () => {
  await using registry = await startRegistry({ blobs: '' })
  await registry.pusher.pushImage('acme/app', 'v1')
  const folder = ownFolder(registry)
  rmSync(idOf(folder))
  await forget(registry)
  using other = newFolder()
  await assert.rejects(openWith(registry, other.folder), /has none of the blobs/)
  assert.equal(existsSync(idOf(other.folder)), false)
  await openWith(registry, folder)
  assert.equal(existsSync(idOf(folder)), true)
  await assert.rejects(openWith(registry, other.folder), /has none of the blobs/)
})

test('continues an interrupted first start, whichever ID was written', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const folder = ownFolder(registry)
  const id = readFileSync(idOf(folder), 'utf8')
  await registry.app.db.tx((tx) => tx.run(sql`DELETE FROM facts WHERE name = ${'blob_folder_id'}`))
  await openWith(registry, folder)
  assert.equal(readFileSync(idOf(folder), 'utf8'), id)

  // A folder without its id still contains the blobs.
  await registry.pusher.pushImage('acme/app', 'v1')
  rmSync(idOf(folder))
  await openWith(registry, folder)
  assert.equal(readFileSync(idOf(folder), 'utf8'), id)
})

test('a database does not take over a folder with an unknown id and without its blobs', async () => {
  await using registry = await startRegistry({ blobs: '' })
  await registry.pusher.pushImage('acme/app', 'v1')
  using other = newFolder()
  const [, database] = readFileSync(idOf(ownFolder(registry)), 'utf8').split(' ')
  writeFileSync(idOf(other.folder), `some-other-id ${database}`)
  await registry.app.db.tx((tx) => tx.run(sql`DELETE FROM facts WHERE name = ${'blob_folder_id'}`))
  await assert.rejects(openWith(registry, other.folder), /has none of the blobs/)
})

test('refuses one of two concurrent first starts with different folders', async () => {
  await using registry = await startRegistry({ blobs: '' })
  await forget(registry)
  using one = newFolder()
  using two = newFolder()
  const results = await Promise.allSettled([openWith(registry, one.folder), openWith(registry, two.folder)])
  assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
})

test('a server with lost blobs starts after the operator creates the file named in the error', async () => {
  for (const isOfBefore of [false, true]) {
    await using registry = await startRegistry({ blobs: '' })
    await registry.pusher.pushImage('acme/app', 'v1')
    if (isOfBefore) await forget(registry)
    using empty = newFolder()
    const error: Error = await openWith(registry, empty.folder).then(
      () => assert.fail('it started'),
      (thrown) => thrown,
    )
    const [, line = '', file = ''] = /lost for good, write the line "([^"]+)" to (\S+)\. The/.exec(error.message)!
    assert.equal(file, idOf(empty.folder))
    writeFileSync(file, `${line}\n`)
    await openWith(registry, empty.folder)
    await openWith(registry, empty.folder)
  }
})
