// Texts of the audit log.
export const auditWords = {
  auditFilters: { actor: 'Actor UID', subject: 'Resource UID', type: 'Event type' },
  noAudit: 'There are no matching entries in the audit log.',
}
