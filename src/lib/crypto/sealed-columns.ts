// What is encrypted under the master key, and where the results are. A new purpose does not compile before it says where.

/** `key` names the rows of the table; values that are NULL or empty are not sealed. */
export type SealedColumn = { table: string; key: string; column: string }

/** The columns of each purpose; page tokens are not stored, and those of another master key are refused. */
export const sealedColumns = {
  'signing-key': [{ table: 'signing_keys', key: 'kid', column: 'private_jwk' }],
  'identity-provider-secret': [{ table: 'identity_providers', key: 'uid', column: 'client_secret' }],
  'subscription-secret': [
    { table: 'subscriptions', key: 'uid', column: 'secret' },
    { table: 'subscriptions', key: 'uid', column: 'old_secret' },
  ],
  'page-token': [],
} as const satisfies Record<string, readonly SealedColumn[]>

export type Purpose = keyof typeof sealedColumns
