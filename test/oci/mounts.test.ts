// Mounts: a blob in another repository does not have to be sent again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { roleUids } from '../support/pinfold.ts'
import { registryClient, startRegistry } from '../support/registry.ts'

test('a mount without a source finds the blob in one of the first repositories that the caller can read', async () => {
  await using registry = await startRegistry()
  const { registryOperator, pusher, seed, registryAs } = registry
  const other = await seed.group('', { name: 'globex' })
  const stranger = await registryAs((await seed.member(other.uid, roleUids.push)).uid)
  const { digest } = await pusher.pushBlob('acme/repo-0', 'a layer')
  const mount = (to: string) => stranger.call('POST', `globex/${to}/blobs/uploads/?mount=${digest}`)
  for (let i = 1; i < 19; i++) {
    await pusher.ok(201, 'POST', `acme/repo-${i}/blobs/uploads/?mount=${digest}&from=acme/repo-0`)
  }
  assert.equal((await mount('none')).status, 202, 'it may read none of them')
  await registryOperator.ok(201, 'POST', `globex/own/blobs/uploads/?mount=${digest}&from=acme/repo-0`)
  assert.equal((await mount('twentieth')).status, 201)
  // Only twenty repositories are searched, so that the cost of a push does not grow with their number.
  const second = await pusher.pushBlob('acme/repo-0', 'another layer')
  for (let i = 1; i < 20; i++) {
    await pusher.ok(201, 'POST', `acme/repo-${i}/blobs/uploads/?mount=${second.digest}&from=acme/repo-0`)
  }
  await registryOperator.ok(201, 'POST', `globex/far/blobs/uploads/?mount=${second.digest}&from=acme/repo-0`)
  const behind = await stranger.call('POST', `globex/behind/blobs/uploads/?mount=${second.digest}`)
  assert.equal(behind.status, 202)
})

test('a token without access to the mount source gets a challenge for both repositories, each once', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const { digest } = await pusher.pushBlob('acme/source', 'a layer')
  const asked = await registry.withToken(pusher.token!).get('/token?scope=repository:acme/app:pull,push')
  const narrow = registryClient(pusher.origin, asked.body.token as string)
  const reply = await narrow.call('POST', `acme/app/blobs/uploads/?mount=${digest}&from=acme/source`)
  assert.equal(reply.status, 401)
  const challenge = String(reply.headers['www-authenticate'])
  assert.match(
    challenge,
    /,scope="repository:acme\/app:pull,push repository:acme\/source:pull",error="insufficient_scope"$/,
  )
})
