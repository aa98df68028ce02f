// The pages of the console: their paths, what is written above them, and the least role that may open them.
const TENANT = [
  ["", "Who is this?", "resolver"],
];
const SERVER = [];

/** All pages of a tenant and of the server that need no user. */
export function pages(tenant) {
  const of = (base) => ([path, title, role]) => ({ path: `${base}/${path}`, title, role });
  return [...TENANT.map(of(`/console/t/${tenant}`)), ...SERVER.map(of("/console"))];
}
