import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startIssuer } from '../support/fake-issuer.ts'
import { roleUids, startPinfold } from '../support/pinfold.ts'

const outside = { allowInsecureIssuers: true, allowPrivateAddresses: true }

test("a job's token becomes a viewer's token, which may read, not write, and nothing after its binding is gone", async () => {
  await using issuer = await startIssuer()
  await using pinfold = await startPinfold(outside)
  const org = await pinfold.seed.group()
  const claimMatch = { issuer: issuer.url, subject: 'repo:acme/web:ref:refs/heads/main' }
  const identity = await pinfold.seed.identity(org.uid, { claimMatch })
  const binding = await pinfold.seed.binding(org.uid, identity.uid, roleUids.viewer)
  const job = await issuer.token({ sub: claimMatch.subject, aud: pinfold.url })

  const aud = encodeURIComponent(pinfold.url)
  const res = await pinfold.withToken(job).call('POST', `/sts/exchange?aud=${aud}&identity=${identity.uid}`)
  assert.equal(res.status, 200, res.text)
  assert.equal(res.body.refreshToken, '')

  const viewer = pinfold.withToken(res.body.token)
  assert.equal((await viewer.get('/registry/v2/repos')).status, 200)
  assert.equal((await viewer.post(`/registry/v2/repos/${org.uid}`, { name: 'web' })).status, 403)
  const me = await viewer.get('/auth/v1/ok')
  assert.equal(me.body.subject, identity.uid)
  assert.deepEqual(
    me.body.capabilities.map((one: any) => [one.group.id, one.role.name]),
    [[org.uid, 'viewer']],
  )
  assert.equal((await pinfold.operator.delete(`/iam/v2/roleBindings/${binding.uid}`)).status, 200)
  assert.equal((await viewer.post(`/registry/v2/repos/${org.uid}`, { name: 'web' })).status, 403)
  assert.equal((await viewer.get(`/registry/v2/repos?uidp.descendants_of=${org.uid}`)).status, 403)
})
