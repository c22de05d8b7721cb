// Filters of the audit log in the address, and as parameters of the API.
export const filterNames = ['actor', 'type', 'subject', 'folder', 'days'] as const
export type AuditQuery = Record<(typeof filterNames)[number], string>

export type AskedAudit = { actor: string; type: string; subject: string; since: string }

/** Parameters of the API. The scope is a folder if one is chosen. The time is rounded, so that pages do not shift. */
export function queryOf(
  group: string,
  { actor, type, subject, folder, days }: AuditQuery,
): AskedAudit & { group: string } {
  const since = Number(days) > 0 ? new Date(startOf(Number(days))).toISOString() : ''
  return { actor, type, subject, since, group: folder.startsWith(`${group}/`) ? folder : group }
}

const hour = 3_600_000
const startOf = (days: number): number => Math.floor(Date.now() / hour) * hour - days * 24 * hour
