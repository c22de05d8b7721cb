// Texts of the audit log.
export const audit = {
  auditFilters: { actor: 'Actor UID', subject: 'Resource UID', type: 'Event type' },
  noAudit: 'There are no matching entries in the audit log.',
}
