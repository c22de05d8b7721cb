// Calls of the reference about email domains and push tokens.
import type { Json } from '../support/pinfold.ts'

export const accessCalls: readonly (readonly [method: string, request: Json, name?: string])[] = [
  [
    'control.iam.v1.EmailDomainsService/CreateEmailDomain',
    { organization: '$org', emailDomain: { domain: 'acme.example' } },
    'emailDomain',
  ],
  ['control.iam.v1.EmailDomainsService/VerifyEmailDomain', { uid: '$emailDomain' }],
  [
    'control.iam.v1.PushTokensService/CreatePushToken',
    { group: '$org', name: 'laptop', push: true, ttl: '2592000s' },
    'pushToken',
  ],
  ['control.iam.v1.AccessService/LookupGrantors', { organization: 'acme' }],
]
