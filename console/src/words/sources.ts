// Texts of the data sources of vulnerabilities.
export const sourceWords = {
  sourcesText:
    'The server compares packages with this data. Images whose packages have no data source are shown as not scanned.',
  noSources: 'This server has no vulnerability data yet. To download it, run:',
  sourceName: 'Data source',
  records: 'Records',
  lastSync: 'Last sync',
  neverFetched: 'never',
  sourceStates: {
    current: 'current',
    old: 'older than two days',
    failed: 'last sync failed',
    missing: 'not downloaded yet',
  },
  license: 'License',
  syncHint: 'To read all data sources now, run this command next to the server:',
  onlyOperator: 'Only the operator of the server can see its data sources.',
}
