// Results of the search, and the command palette.
import type { Screens } from '../app/area.ts'
import { PackageScreen } from '../screens/search/package.tsx'
import { SearchScreen } from '../screens/search/search.tsx'

export { Palette } from '../screens/search/palette.tsx'

export const screens: Screens = {
  search: ({ query }) => <SearchScreen q={query.get('q') ?? ''} kind={query.get('kind') ?? ''} />,
  package: ({ query }) => <PackageScreen name={query.get('name') ?? ''} />,
}
