// Results of the search.
import type { Screens } from '../app/area.ts'
import { SearchScreen } from '../screens/start/search.tsx'

export const screens: Screens = {
  search: ({ query }) => <SearchScreen q={query.get('q') ?? ''} />,
}
