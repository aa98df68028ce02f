// The pages of the console: their paths, what is written above them, and the least role that may open them.

const TENANT = [
  ["", "Who is this?", "resolver"],
  ["duplicates", "Duplicates", "admin"],
  ["import", "Import users", "admin"],
  ["bulk", "Bulk changes", "viewer"],
  ["audit", "Audit", "viewer"],
  ["events", "Events of", "viewer"],
  ["deliveries", "Deliveries", "admin"],
  ["usage", "Usage of", "admin"],
  ["policies", "Policies of", "viewer"],
];
const SERVER = [
  ["tenants", "Tenants", "viewer"],
  ["callers", "Callers", "admin"],
  ["health", "Health", "viewer"],
];

/** All pages of a tenant and of the server that the menu has. */
export function pages(tenant) {
  const of = (base) => ([path, title, role]) => ({ path: `${base}/${path}`, title, role });
  return [...TENANT.map(of(`/console/t/${tenant}`)), ...SERVER.map(of("/console"))];
}

/** The pages about a user and a search that only some roles may open. */
export const PAGES_BY_ROLE = {
  viewer: [
    "users/USER/history",
    "users/USER/inbox",
    "audit",
    "operations/none",
    "operations/none/users",
    "search/SEARCH/columns",
    "search/SEARCH/export?format=csv",
    "audit/export?format=csv",
    "events",
    "policies",
    "policies/attributes",
    "policies/history",
    "bulk",
  ],
  registrar: ["users/USER/link", "users/USER/name", "users/USER/delete", "users/USER/attributes", "users/USER/merge", "users/USER/inbox/send", "users/new", "bulk/new"],
  admin: [
    "users/USER/purge",
    "duplicates",
    "import",
    "operations/none/undo",
    "usage",
    "deliveries",
    "deliveries/new",
    "policies/delete",
    "/console/callers/new",
    "/console/callers/extend?name=admin",
    "/console/callers/revoke?name=admin",
    "/console/callers/sessions",
  ],
};

/** The forms that only some roles may send. */
export const FORMS_BY_ROLE = {
  viewer: ["audit", "events", "search/SEARCH/filter", "search/SEARCH/save", "saved/1/remove"],
  registrar: [
    "users/USER/link",
    "users/USER/unlink",
    "users/USER/replace",
    "users/USER/move",
    "users/USER/verify",
    "users/USER/primary",
    "users/USER/name",
    "users/USER/attributes",
    "users/USER/disable",
    "users/USER/enable",
    "users/USER/delete",
    "users/USER/undelete",
    "users/USER/merge",
    "users/USER/merge/OTHER",
    "users/USER/unmerge/OTHER",
    "users/USER/inbox/send",
    "users/USER/inbox/read",
    "users/USER/inbox/delete",
    "users/new",
    "bulk/new",
    "bulk/x/apply",
    "bulk/x/stop",
    "bulk/x/resume",
  ],
  admin: [
    "users/USER/purge",
    "duplicates",
    "import",
    "import/1/columns",
    "import/1/dry-run",
    "import/1/run",
    "import/1/stop",
    "import/1/remove",
    "import/1/values",
    "import/1/kept",
    "import/1/mend",
    "operations/none/undo",
    "deliveries/new",
    "policies",
    "policies/handles",
    "policies/attributes",
    "policies/delete",
    "/console/callers/new",
    "/console/callers/extend",
    "/console/callers/revoke",
    "/console/callers/sessions/end",
  ],
};

/** Whether a form is about a bulk change or a file that there is not. */
export const isOfNothing = (path) => /^(bulk\/x|import\/1)\//.test(path);

/** Returns what completes a path: with a tenant, the ids of users, and the short id of a search. */
export const completing = (tenant, user, other, search) => (path) => {
  const completed = path.replace("USER", user.userId).replace("OTHER", other.userId).replace("SEARCH", search);
  return completed.startsWith("/") ? completed : `/console/t/${tenant}/${completed}`;
};
