// Check of the claim that lists the external groups of a person.

/** Claims of the protocol that never hold the name of a group. */
const neverGroups: readonly string[] = [
  ...['iss', 'aud', 'azp', 'exp', 'nbf', 'iat', 'jti', 'nonce', 'auth_time', 'at_hash', 'c_hash', 's_hash', 'sid'],
  ...['email_verified', 'phone_number_verified', 'updated_at', '_claim_names', '_claim_sources', 'hasgroups', 'cnf'],
]

/** Why no token can have groups under this name; empty when one can. */
export function problemOfGroupsClaim(name: string): string {
  if (neverGroups.includes(name)) return 'names a claim of the protocol, which lists no groups'
  if (name !== name.trim() || !name.isWellFormed() || /\p{Cc}/u.test(name)) {
    return 'must not start or end with a space or hold control characters'
  }
  const isExpression = /^(?:[$/@.]|\{)|\.\.|\.$|[[\]*]/.test(name)
  return isExpression
    ? 'must be the name of a claim, with dots between the names of objects, such as realm_access.roles'
    : ''
}
