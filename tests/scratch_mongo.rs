//! Scratch.
#![allow(clippy::unwrap_used)]
use async_trait::async_trait;
use mongodb::bson::doc;
use polynym::directory::Store;
use polynym::store::conformance::{Failure, Place, cases};
use polynym::store::mongo::{Mongo, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
static N: AtomicUsize = AtomicUsize::new(0);
struct Db(String);
#[async_trait]
impl Place for Db {
    async fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        Ok(Arc::new(Mongo::open(&self.0, Options::default()).await?))
    }
}
#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    let base = std::env::var("MURI").unwrap();
    let client = mongodb::Client::with_uri_str(&base).await.unwrap();
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut failed = 0;
    for case in cases() {
        if !case.name().contains(&only) {
            continue;
        }
        let db = format!("s{}_{}", std::process::id(), N.fetch_add(1, Ordering::Relaxed));
        let d = client.database(&db);
        for c in ["users", "identities", "requests"] {
            d.create_collection(c).await.unwrap();
        }
        d.collection("meta").insert_one(doc! {"_id":"schema","v":1_i64}).await.unwrap();
        let name = case.name();
        let t = std::time::Instant::now();
        let r = case.run(Arc::new(Db(format!("{base}{db}")))).await;
        println!("{name}: {:?} {:?}", r.as_ref().err().map(|e| e.to_string()), t.elapsed());
        failed += usize::from(r.is_err());
        d.drop().await.unwrap();
    }
    assert_eq!(failed, 0);
}
