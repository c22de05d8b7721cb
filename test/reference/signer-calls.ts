// Calls of the reference about the end of an accepted risk, and about the signers of statements on vulnerabilities.
import type { Json } from '../support/pinfold.ts'

const publicKey = [
  '-----BEGIN PUBLIC KEY-----',
  'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEd54YHJuX0W20JomTfSzaJMFe0gqP',
  'UhnHFj/UCqO5feroesjqW/KKtAo58my1Lu43h55C4NXhJtLL/+vk+LO4kg==',
  '-----END PUBLIC KEY-----',
].join('\n')

export const signerCalls: readonly (readonly [method: string, request: Json, name?: string])[] = [
  ['control.scanning.v1.RiskAcceptancesService/GetRiskAcceptance', { uid: '$risk' }],
  ['control.scanning.v1.RiskAcceptancesService/ListRiskAcceptances', { scopeUid: '$app' }],
  ['control.scanning.v1.RiskAcceptancesService/RevokeRiskAcceptance', { uid: '$risk', reason: 'Mended in 2.1' }],
  [
    'control.scanning.v1.VexSignersService/CreateVexSigner',
    {
      parent: '$app',
      vexSigner: { name: 'Acme security', publicKey, reason: 'They build it', expireTime: '$yearAhead' },
    },
    'signer',
  ],
  ['control.scanning.v1.VexSignersService/GetVexSigner', { uid: '$signer' }],
  ['control.scanning.v1.VexSignersService/ListVexSigners', { scopeUid: '$app' }],
  ['control.scanning.v1.VexSignersService/RevokeVexSigner', { uid: '$signer', reason: 'A new key' }],
]
