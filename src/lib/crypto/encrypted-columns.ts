// Columns that are encrypted with the master key. A new purpose compiles only if its columns are listed here.

/** Encrypted column. `key` is the primary key of the table. NULL and empty values are not encrypted. */
export type EncryptedColumn = { table: string; key: string; column: string }

/**
 * Encrypted columns of each purpose. Page tokens and links have no columns, since they are not stored. After a change of the
 * master key, older ones are refused.
 */
export const encryptedColumns = {
  'signing-key': [{ table: 'signing_keys', key: 'kid', column: 'private_jwk' }],
  'identity-provider-secret': [{ table: 'identity_providers', key: 'uid', column: 'client_secret' }],
  'subscription-secret': [
    { table: 'subscriptions', key: 'uid', column: 'secret' },
    { table: 'subscriptions', key: 'uid', column: 'old_secret' },
  ],
  'sign-in-attempt': [{ table: 'sign_in_attempts', key: 'state_hash', column: 'sealed' }],
  'session-id-token': [{ table: 'sessions', key: 'uid', column: 'id_token' }],
  'refresh-token-key': [{ table: 'refresh_tokens', key: 'session_uid', column: 'sealed_key' }],
  'upstream-password': [{ table: 'upstreams', key: 'uid', column: 'password' }],
  'scanner-credential': [{ table: 'scanners', key: 'name', column: 'credential' }],
  'request-answer': [{ table: 'request_ids', key: 'id', column: 'answer' }],
  'ledger-secret': [{ table: 'ledger_logs', key: 'origin', column: 'secret' }],
  'ledger-key': [
    { table: 'ledger_log_keys', key: 'vkey', column: 'private_key' },
    { table: 'witness_keys', key: 'vkey', column: 'private_key' },
  ],
  'page-token': [],
  'report-link': [],
} as const satisfies Record<string, readonly EncryptedColumn[]>

export type Purpose = keyof typeof encryptedColumns
