import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { GroupInviteSchema } from '#gen/pinfold/iam/v2/group_invites_pb.ts'
import {
  IdentityProviderSchema,
  ListIdentityProvidersResponseSchema,
} from '#gen/pinfold/iam/v2/identity_providers_pb.ts'
import { withoutSecrets } from './secrets.ts'

const provider = (clientSecret: string) => ({
  name: 'staff',
  configuration: {
    case: 'oidc',
    value: { issuer: 'https://issuer.example.com', clientId: 'id', clientSecret },
  } as const,
})

test('removes secrets at any depth, also in a oneof', () => {
  const invite = create(GroupInviteSchema, { uid: 'a', code: 'hidden words' })
  assert.deepEqual(withoutSecrets(GroupInviteSchema, invite), create(GroupInviteSchema, { uid: 'a' }))
  const whole = create(IdentityProviderSchema, provider('hidden words'))
  const shown = create(IdentityProviderSchema, provider(''))
  assert.deepEqual(withoutSecrets(IdentityProviderSchema, whole), shown)
  assert.equal(whole.configuration.value?.clientSecret, 'hidden words', 'what the server has stays as it is')
  const none = create(IdentityProviderSchema, { name: 'staff' })
  assert.deepEqual(withoutSecrets(IdentityProviderSchema, none), none)
  const list = create(ListIdentityProvidersResponseSchema, { identityProviders: [whole] })
  assert.deepEqual(withoutSecrets(ListIdentityProvidersResponseSchema, list).identityProviders, [shown])
})
